"""`python -m gpupif` is `gpupif`."""

from .cli.main import main

main()
