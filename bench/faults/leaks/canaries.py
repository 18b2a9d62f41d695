"""Canaries: random words that tell which caller they belong to. Every byte that a caller receives is searched for those of others."""

import random
import re

# Vowels and `u`: neither references nor ids of runs contain them.
MARKER = "quazo"
OWNER_LETTERS = "abcdefghij"
FOUND = re.compile(rb"quazo([a-j]{3})([a-z]{0,10})", re.IGNORECASE)


def owner_code(number):
    """Three letters for the number of a caller."""
    return "".join(OWNER_LETTERS[int(digit)] for digit in f"{number:03d}")


class Canaries:
    """Issues the canaries of one trial, and finds those that crossed from one caller to another."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.issued = {}

    def new(self, number):
        letters = "".join(self.random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(10))
        canary = MARKER + owner_code(number) + letters
        self.issued.setdefault(owner_code(number), set()).add(canary)
        return canary

    def own(self, number, content):
        """How many canaries of this caller the content has."""
        code = owner_code(number)
        return sum(1 for found in FOUND.finditer(content) if found[1].decode().lower() == code)

    def crossed(self, number, content):
        """The different canaries of other callers in the content. One that was cut off counts, too, if it can only be one that was issued."""
        code, crossed = owner_code(number), set()
        for found in FOUND.finditer(content):
            owner = found[1].decode().lower()
            text = found[0].decode().lower()
            if owner != code and any(canary.startswith(text) for canary in self.issued.get(owner, ())):
                crossed.add(text)
        return sorted(crossed)
