"""Private helpers of the packages that users import; no stable interface."""
