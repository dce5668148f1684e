"""Usage: cluster_top.py CARMA: carma top --cluster, among the nodes of test_cluster.sh (two with GPUs, a job on n2)."""

import re
import sys

from terminal import Terminal


def top(nodes):
    return Terminal([sys.argv[1], "top", "--delay", "0.3", "--node-timeout", "30", "--nodes", nodes], 150, 40, LC_ALL="C.UTF-8")


t = top("n1,n2,refused")
t.sees("on-n2", "8 GPUs", "3 nodes", "1 SILENT", "ssh: connect to host refused")
t.until("the job's node and memory", lambda text: re.search(r"^ +1 n2 +on-n2 ", text, re.M))
t.until("the job's GPU", lambda text: re.search(r"^ +\d n2 +A100.* 1$", text, re.M))
t.until("Slurm's jobs wait", lambda text: re.search(r"^ +12 - +a\|b +ada +- .*Resources \(gres:gpumem:5G on 2 nodes\)", text, re.M))
t.press("c")
t.sees("only reads")
assert "y/n" not in t.text()
t.press("l")
t.sees("only reads")
t.press("q")
assert t.ended() == 0

t = top("evil")
t.sees("1 node", "evil")
t.press("tab", "down", "q")
assert t.ended() == 0
