"""What calls cost: prices, and the ledger that books them."""
