// Amounts, counts and times as people read them.

const LANGUAGE = "en";
const counts = new Intl.NumberFormat(LANGUAGE);
const short = new Intl.NumberFormat(LANGUAGE, { notation: "compact", maximumFractionDigits: 1 });

export function count(number) {
  return counts.format(number);
}

export function compact(number) {
  return short.format(number);
}

/** An amount, given as a number or as exact text, with as many digits as it takes to see it. */
export function money(amount, currency) {
  const size = Math.abs(Number(amount));
  const digits =
    size === 0 || size >= 0.1
      ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
      : { maximumSignificantDigits: 3 };
  try {
    return new Intl.NumberFormat(LANGUAGE, { style: "currency", currency, ...digits }).format(amount);
  } catch {
    // Not every currency of a profile is one of ISO 4217.
    return `${new Intl.NumberFormat(LANGUAGE, digits).format(amount)} ${currency}`;
  }
}

export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
