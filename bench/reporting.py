"""The lines that the benchmarks print."""


def report(what, figure, target, ok):
    """Prints one measurement beside its target."""
    print(f"{what:<62} {figure:<38} target {target:<16} {'ok' if ok else 'SHORT'}", flush=True)
