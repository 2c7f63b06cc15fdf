"""Tables 3, 4 and 5 of Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, as printed."""

import pandas as pd

COLUMNS = ["DT", "OLB", "AdaOLM", "MB .3", "MB .1", "MB .05", "MB .01", "MB .001", "OvA", "AdaOVA"]
LAST_FIFTH = """
balance-scale .768 .772 .754 .788 .821 .819 .805 .752 .786 .795
mice          .608 .399 .561 .572 .695 .663 .502 .467 .742 .667
car           .924 .914 .930 .914 .885 .870 .836 .830 .946 .919
mushroom      .999 1.   1.   .997 1.   1.   .999 .998 1.   1.
nursery       .953 .941 .966 .965 .969 .964 .948 .940 .974 .965
isolet        .515 .149 .521 .453 .626 .635 .226 .165 .579 .570
movement      .915 .870 .962 .975 .987 .988 .984 .981 .947 .970
"""
ALL = """
balance-scale .734 .747 .698 .751 .769 .759 .736 .677 .724 .730
mice          .499 .315 .454 .457 .507 .449 .356 .343 .586 .530
car           .848 .839 .865 .842 .829 .814 .767 .762 .881 .853
mushroom      .996 .997 .995 .991 .995 .994 .993 .992 .996 .995
nursery       .921 .909 .928 .932 .936 .932 .918 .912 .939 .932
isolet        .395 .104 .456 .333 .486 .461 .152 .111 .507 .472
movement      .898 .864 .942 .954 .972 .973 .959 .957 .927 .952
"""
SECONDS = """
balance-scale 8 19 20 26 42 47 50 51 66 43
mice 105 263 416 783 2173 3539 3579 3310 3092 3013
car 39 27 59 56 105 146 165 152 195 143
mushroom 241 169 355 318 325 326 324 321 718 519
nursery 526 302 735 840 1510 2028 2181 1984 2995 1732
isolet 470 1497 2422 18732 38907 64707 62492 50700 37300 33328
movement 1960 3437 5072 13018 17608 18676 16739 16023 30080 21389
"""


def printed(text):
    """Return one of the paper's tables, data sets down and methods across."""
    rows = {line.split()[0]: [float(number) for number in line.split()[1:]] for line in text.strip().splitlines()}
    return pd.DataFrame(rows, index=COLUMNS).T


PAPER = {"last fifth": printed(LAST_FIFTH), "all": printed(ALL), "seconds": printed(SECONDS)}
"""Accuracy on the last fifth (Table 3) and on all rows (Table 4), run time (Table 5): data sets down, methods across."""
