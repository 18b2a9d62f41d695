"""What an attack is: a function that tries something, and a trial that records what must not have happened."""

import threading
import traceback

from sandbox import Sandbox

ATTACKS = []

# Kinds of attacks, by what a success would mean; three of them have totals.
RULE, CANARY, HIDDEN, OTHER = "rule", "canary", "hidden", "other"


class Attack:
    """A registered attack."""

    def __init__(self, name, kind, expected, run, quick, alone):
        self.name, self.kind, self.expected, self.run = name, kind, expected, run
        self.quick, self.alone = quick, alone


def attack(name, expected, kind=OTHER, quick=True, alone=False):
    """Registers an attack. `quick`: part of the subset for CI. `alone`: measures time, so nothing else runs beside it."""

    def register(run):
        ATTACKS.append(Attack(name, kind, expected, run, quick, alone))
        return run

    return register


class Trial:
    """One execution of an attack, with the variants it tried and what went through."""

    def __init__(self, attack, binary):
        self.attack, self.binary = attack, binary
        self.tried, self.broken, self.notes = 0, [], []
        self.controls, self.error = [], None
        self.sandboxes, self.closing = [], []
        self.lock = threading.Lock()

    def box(self):
        """A sandbox that is removed after the attack."""
        box = Sandbox(self.binary)
        self.sandboxes.append(box)
        return box

    def keep(self, resource):
        """Closes a resource after the attack."""
        self.closing.append(resource)
        return resource

    def must(self, holds, what):
        """One variant: `what` says what went through if it did not hold."""
        with self.lock:
            self.tried += 1
            if not holds:
                self.broken.append(what)
        return holds

    def control(self, works, what):
        """Something that must work without the attack; otherwise the attack proves nothing."""
        with self.lock:
            if not works:
                self.controls.append(what)
        return works

    def note(self, text):
        self.notes.append(text)

    @property
    def held(self):
        return not (self.broken or self.controls or self.error) and self.tried > 0

    def observed(self):
        if self.error:
            return f"the attack itself failed: {self.error}"
        if self.broken:
            more = f" and {len(self.broken) - 3} more" if len(self.broken) > 3 else ""
            return f"{len(self.broken)} of {self.tried} went through: {'; '.join(self.broken[:3])}{more}"
        if self.controls:
            return f"proves nothing: {'; '.join(self.controls[:3])}"
        return "; ".join(self.notes) or f"0 of {self.tried} went through"

    def execute(self):
        try:
            self.attack.run(self)
        except Exception as error:  # an attack that breaks down is reported as such, the others go on
            self.error = f"{type(error).__name__}: {error}"
            self.traceback = traceback.format_exc()
        finally:
            for resource in self.closing:
                try:
                    resource.close()
                except Exception:
                    pass
            for box in self.sandboxes:
                box.close()
        return self
