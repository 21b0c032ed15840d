"""One printed line for each check."""
import contextlib
import traceback


class Check:
    def __init__(self):
        self.figures = []

    def say(self, text):
        self.figures.append(str(text))

    def equal(self, found, wanted):
        if found != wanted:
            raise AssertionError(f"{found!r} instead of {wanted!r}")

    def true(self, holds, otherwise):
        if not holds:
            raise AssertionError(otherwise)


class Report:
    def __init__(self):
        self.part = ""
        self.failed = []

    @contextlib.contextmanager
    def check(self, name):
        """A failed check does not stop the ones after it."""
        check = Check()
        try:
            yield check
            outcome = "ok  "
        except Exception as error:
            outcome = "FAIL"
            self.failed.append(f"{self.part}: {name}")
            check.say(f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else error)
            check.say("at " + " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in
                                         reversed(traceback.extract_tb(error.__traceback__)[1:])))
        print(f"{outcome} {self.part:8} {name}: {', '.join(check.figures)}".rstrip(": "), flush=True)

    def finish(self):
        if self.failed:
            print(f"{len(self.failed)} failed: {'; '.join(self.failed)}")
        return 1 if self.failed else 0
