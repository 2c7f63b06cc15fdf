"""Write the tables of the result pages anew from the csv files of docs/results: `python analysis/fill_pages.py [PAGE ...]`.

Every notebook does it for its own page at its end; this is for csv files that were changed, or a page whose markers were.
"""

import sys

import result_pages

for name in sys.argv[1:] or result_pages.PAGES:
    result_pages.fill(name)
