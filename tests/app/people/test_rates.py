"""Rates: what counts as one stranger."""

import pytest

from app.errors import RateLimited
from app.people.rates import Rates


def test_an_ipv6_network_is_one_stranger_and_an_ipv4_address_is_one() -> None:
    rates = Rates()
    for number in range(20):
        rates.check_address(f"2001:db8::{number}")
        rates.count_failure(f"2001:db8::{number}")
        rates.count_failure(f"192.0.2.{number}")
        rates.count_failure(f"::ffff:198.51.100.{number}")
    with pytest.raises(RateLimited, match="too many keys from your address") as refused:
        rates.check_address("2001:db8::ffff")
    assert 1 <= refused.value.retry_after <= 60
    for other in ("2001:db8:0:1::1", "192.0.2.1", "::ffff:198.51.100.1", ""):
        rates.check_address(other)
