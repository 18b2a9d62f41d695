"""Browser tests of the web console; `just console` runs them."""
