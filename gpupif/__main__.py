"""`python -m gpupif` is `gpupif`."""

from .cli import main

main()
