"""How often somebody may ask, counted in memory, in this process."""

import ipaddress
import math
import time

from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter

from app.errors import RateLimited
from model.errors import BadInput

MOST = 100_000  # requests of one window, each of which is remembered until the window has passed
STRANGERS = "20/minute"  # keys that turn out to be none, from one address


def read_rate(text: str) -> RateLimitItem:
    """The rate that `text` is, such as 100/minute or 5/10 seconds.

    Raises:
        BadInput: it is none, it is zero, or it is too many to remember.
    """
    try:
        (rate,) = parse_many(text)
    except ValueError:
        raise BadInput(f"--rate {text!r} can't be understood; write 100/minute, 5/second, or 10000/day") from None
    if not 1 <= rate.amount <= MOST:
        raise BadInput(
            f"--rate {text!r}: at least 1 and at most {MOST:,} requests; choose a shorter time, as 500/second"
        )
    return rate


class Rates:
    """Counts the requests of every key, and the failures of every address."""

    def __init__(self) -> None:
        self._keys = MovingWindowRateLimiter(MemoryStorage())
        # Fixed windows, for their counters are thrown away: there are many more addresses than keys.
        self._addresses = FixedWindowRateLimiter(MemoryStorage())
        self._strangers = read_rate(STRANGERS)

    def take(self, key_id: str, rate: RateLimitItem) -> None:
        """Count a request with the key.

        Raises:
            RateLimited: it had as many as it may have.
        """
        if not self._keys.hit(rate, key_id):
            wait = _seconds_until(self._keys.get_window_stats(rate, key_id).reset_time)
            raise RateLimited(
                f"key {key_id} may ask {rate.amount} times in {rate.get_expiry()} seconds; try again in {wait} seconds",
                retry_after=wait,
            )

    def check_address(self, address: str) -> None:
        """Let the address try a key.

        Raises:
            RateLimited: too many that it tried lately were none.
        """
        network = _network(address)
        if not self._addresses.test(self._strangers, network):
            wait = _seconds_until(self._addresses.get_window_stats(self._strangers, network).reset_time)
            raise RateLimited(
                f"too many keys from your address were not valid; check the key, and try again in {wait} seconds",
                retry_after=wait,
            )

    def count_failure(self, address: str) -> None:
        """A key from the address was none."""
        self._addresses.hit(self._strangers, _network(address))


def _network(address: str) -> str:
    """What one subscriber holds: an IPv4 address, or the 2^64 of an IPv6 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a socket of the file system has none
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped:  # an IPv4 client of a server that listens on ::
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _seconds_until(time_of_reset: float) -> int:
    return max(1, math.ceil(time_of_reset - time.time()))
