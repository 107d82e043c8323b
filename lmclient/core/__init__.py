"""The vocabulary: values that every other part of lmclient speaks. No IO, no clock."""
