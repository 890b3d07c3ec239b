"""More than can be done: what is turned away, what passes first, and how soon all is as before."""

from tests.helpers.loopback import trust_loopback

trust_loopback()
