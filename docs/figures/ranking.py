"""Which agent suits my table? Mistake rates on scikit-learn's wine data, with 95 % intervals over ten orders of the rows."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from banditlab import compare
from banditlab.analysis import summary_rows

table = load_wine(as_frame=True).frame
results = compare(table, "target", agents="stackcb,fastcb,linucb,epsilon-greedy-direct,beta-ts", out="wine")
rows = [row for row in summary_rows(results) if row.kind == "bit"][::-1]
for place, row in enumerate(rows):
    found = row.mistakes.scaled(100)
    plt.plot([found.low, found.high], [place, place], color="C0")
    plt.plot(found.mean, place, "o", color="C0")
plt.yticks(range(len(rows)), [row.label for row in rows])
plt.xlabel("mistake rate, %, with its 95 % interval")
plt.savefig("ranking.svg")
