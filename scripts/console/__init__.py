"""Browser tests of the web console; see scripts/console-tests."""
