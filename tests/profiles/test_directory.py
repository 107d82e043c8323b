from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmclient.errors import ConfigurationError, ProfileError
from lmclient.profiles import Category, ModelProfile, Profiles, resolve
from lmclient.settings import Settings


def write(directory: Path, name: str, model: str, category: str = "") -> None:
    (directory / name).write_text(f"provider = 'ollama'\nmodel = '{model}'\ncategory = '{category}'\n")


def answer(target: Any, **settings: Any) -> tuple[list[str], str | None]:
    profiles, category = resolve(target, Settings(**settings))
    return [profile.model for profile in profiles], category


@pytest.mark.parametrize("category", Category)
def test_every_category_points_to_the_local_model_at_first(category: Category) -> None:
    assert answer(category) == (["smollm2"], category.value)


def test_the_project_hides_the_user_who_hides_what_is_shipped(project: Path, user_profiles: Path) -> None:
    write(user_profiles, "local.toml", "users")
    write(user_profiles, "mine.toml", "users")
    write(project / "profiles", "mine.toml", "projects")
    assert (answer("local")[0], answer("mine")[0]) == (["users"], ["projects"])


def test_toml_hides_properties(project: Path) -> None:
    (project / "profiles" / "a.properties").write_text("modelProvider=OLLAMA\nmodelName=old")
    write(project / "profiles", "a.toml", "new")
    assert answer("a")[0] == ["new"]


def test_the_profiles_directory_is_a_setting(tmp_path: Path) -> None:
    write(tmp_path, "a.v1.5.toml", "there")
    assert answer("a.v1.5", profiles_dir=tmp_path) == (["there"], None)


def test_a_category_may_have_fallbacks(project: Path) -> None:
    write(project / "profiles", "a.toml", "first")
    write(project / "profiles", "b.toml", "second")
    assert answer("fast", categories={"fast": ["a", "b"]}) == (["first", "second"], "fast")


def test_a_category_wins_over_a_profile_name(project: Path) -> None:
    write(project / "profiles", "m.toml", "profile")
    assert answer("m") == (["smollm2"], "m")


@pytest.mark.parametrize("target", ["M", "fast", "FAST"])
def test_case_does_not_matter_for_categories(project: Path, target: str) -> None:
    write(project / "profiles", "a.toml", "it")
    assert answer(target, categories={"m": "a", "Fast": "a"})[0] == ["it"]


def test_a_profile_in_code_is_a_target() -> None:
    profile = ModelProfile(provider="ollama", model="x")
    assert resolve(profile, Settings()) == ([profile], None)


def test_a_profile_of_the_user_may_name_its_category(project: Path) -> None:
    write(project / "profiles", "a.toml", "labelled", category="M")
    write(project / "profiles", "b.toml", "too late", category="m")
    assert answer("m") == (["labelled"], "m")


def test_a_label_may_be_a_category_of_its_own(project: Path) -> None:
    write(project / "profiles", "a.toml", "labelled", category="CUSTOM")
    assert answer("custom") == (["labelled"], "CUSTOM")


def test_the_settings_win_over_a_label_even_with_the_default(project: Path) -> None:
    write(project / "profiles", "a.toml", "labelled", category="m")
    assert answer("m", categories={"m": "local"}) == (["smollm2"], "m")


def test_an_unknown_target_lists_what_there_is_the_closest_first() -> None:
    with pytest.raises(ConfigurationError) as caught:
        answer("gpt5-mini")
    assert "'gpt5-mini'; expected a category, one of s, m, l, xl, hot, cold" in str(caught.value)
    assert "or a profile, one of gpt-5-mini, " in str(caught.value)


def test_a_target_of_another_type_is_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match="found int"):
        answer(5)


def test_a_category_without_its_profile_is_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match="category 'm' points to the profile 'gone'"):
        answer("m", categories={"m": "gone"})


def test_listing_needs_no_variable(project: Path) -> None:
    (project / "profiles" / "a.toml").write_text("provider = 'ollama'\napi_key = '${NOPE}'")
    files = Profiles(Settings()).files
    assert files["a"].read()["api_key"] == "${NOPE}"
    assert not files["a"].shipped
    assert files["local"].shipped


def test_a_missing_key_is_an_error_at_first_use(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "profiles" / "a.toml").write_text("provider = 'ollama'\napi_key = '${NOPE}'")
    profiles = Profiles(Settings())
    with pytest.raises(ProfileError, match=r"Profile 'a' .*api_key: NOPE is not set"):
        profiles.resolve("a")
    monkeypatch.setenv("NOPE", "now")
    assert profiles.resolve("a")[0][0].api_key is not None


def test_an_edited_file_is_seen_by_the_next_client_only(project: Path) -> None:
    write(project / "profiles", "a.toml", "old")
    first = Profiles(Settings())
    first.resolve("a")
    write(project / "profiles", "a.toml", "new")
    assert first.resolve("a")[0][0].model == "old"
    assert Profiles(Settings()).resolve("a")[0][0].model == "new"


def test_a_caller_may_change_the_list_it_got() -> None:
    profiles = Profiles(Settings())
    profiles.resolve("m")[0].clear()
    assert len(profiles.resolve("m")[0]) == 1


def test_a_broken_profile_is_no_reason_to_refuse_another(project: Path) -> None:
    (project / "profiles" / "broken.toml").write_text("provider =")
    write(project / "profiles", "fine.toml", "there")
    assert answer("fine") == (["there"], None)


@pytest.mark.parametrize("target", ["hot", "broken", "unknown"])
def test_what_a_broken_profile_may_decide_names_it(project: Path, target: str) -> None:
    """It may be the one that names the category."""
    (project / "profiles" / "broken.toml").write_text("provider =")
    with pytest.raises(ProfileError, match=r"broken\.toml"):
        answer(target)
