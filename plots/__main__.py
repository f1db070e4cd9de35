"""`python -m plots --results results/<profile>`: draw every figure of a profile."""

import argparse
import sys
from pathlib import Path

from plots.gallery import draw_all
from plots.tables import TableError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m plots", description="Draw the figures of one profile.")
    parser.add_argument("--results", type=Path, required=True, help="folder of the profile, such as results/laptop")
    results = parser.parse_args().results
    try:
        captions = draw_all(results)
    except TableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot write {results / 'figures'}: {error.strerror or error}", file=sys.stderr)
        return 1
    for figure in captions:
        print(f"{figure['name']}: {'not drawn, ' + figure['missing'] if 'missing' in figure else figure['title']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
