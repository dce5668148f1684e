"""Asks a Prometheus: prometheus_query.py URL up QUERY            whether it finds anything
                      prometheus_query.py URL compare STATS HOURS  whether its counters agree with `carma stats --json`
                      prometheus_query.py URL draw DASHBOARD TIME  whether each query of a Grafana dashboard finds something,
                                                                   at that time (seconds since 1970)"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request

# Counters that carma keeps itself: they never fall, over stops and kills of carmad.
KEPT = ['carma_jobs_submitted_total', 'carma_job_ends_total', 'carma_oom_total', 'carma_retries_total',
        'carma_queue_wait_seconds_count', 'carma_queue_wait_seconds_sum', 'carma_user_gpu_seconds_total',
        'carma_user_energy_joules_total', 'carma_user_job_ends_total', 'carma_gpu_idle_energy_joules_total',
        'carma_gpu_unmanaged_energy_joules_total']
EXACTLY = 1e-12  # of it: the precision that a double leaves nanoseconds and millijoules
SPAN = '[6h]'    # of wall time: longer than any run


def ask(url, query, **more):
    """[(labels, value or [(time, value)])]"""
    asked = urllib.parse.urlencode({'query': query, **more})
    try:
        with urllib.request.urlopen(f'{url}/api/v1/query?{asked}', timeout=10) as answer:
            result = json.load(answer)['data']['result']
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return []
    return [(one['metric'], [(time, float(value)) for time, value in one['values']] if 'values' in one
             else float(one['value'][1])) for one in result]


def only(found):
    assert len(found) == 1, found
    return found[0][1]


def same(what, ours, theirs):
    assert abs(ours - theirs) <= EXACTLY * max(abs(ours), abs(theirs)), f'{what}: Prometheus {theirs}, carma stats {ours}'


def compare(url, path, hours):
    with open(path, encoding='utf-8') as file:
        stats = json.load(file)
    lines, joules_of_all = [], 0
    for user in stats['users']:
        who = f'{{user="{user["user"]}",uid="{user["uid"]}"}}'
        seconds = only(ask(url, 'carma_user_gpu_seconds_total' + who))
        joules = only(ask(url, 'carma_user_energy_joules_total' + who))
        same(f'GPU seconds of {who}', user['gpu_ns'] / 1e9, seconds)
        same(f'energy of {who}', user['modelled_energy_mj'] / 1e3, joules)
        same(f'ended jobs of {who}', user['ended'], only(ask(url, 'carma_user_job_ends_total' + who)))
        assert user['ended'] == user['jobs'] and seconds > 0 and joules > 0, user
        joules_of_all += joules
        lines.append(f'{user["user"]}: {user["ended"]} jobs, {seconds / 3600:.6f} GPU hours and {joules / 1e3:.6f} kJ by '
                     f'Prometheus; {user["gpu_ns"] / 3.6e12:.6f} and {user["modelled_energy_mj"] / 1e6:.6f} by carma stats')
    same('waits', sum(user['launched'] for user in stats['users']), only(ask(url, 'carma_queue_wait_seconds_count')))
    same('waited', sum(user['wait_ns'] for user in stats['users']) / 1e9, only(ask(url, 'carma_queue_wait_seconds_sum')))
    same('retries', sum(user['retries'] for user in stats['users']), only(ask(url, 'carma_retries_total')))
    crashes = sum(user['oom_crashes'] + user['handle_crashes'] for user in stats['users'])
    same('crashes', crashes, only(ask(url, 'sum(carma_oom_total)')))
    assert crashes > 0, 'no run has ended because memory ran out'
    for name in KEPT:
        found = ask(url, f'max(resets({name}{SPAN}))')
        assert found and only(found) == 0, f'{name} has fallen: {ask(url, f"resets({name}{SPAN}) > 0")}'

    clock = only(ask(url, 'carma_node_time_seconds' + SPAN))
    span = clock[-1][1] - clock[0][1]
    assert span >= hours * 3600 * 0.95, f'Prometheus saw {span / 3600} hours'
    # The energy's owners are a model's; its sum is not: the unstored part is the idle power of the last 30 s.
    counted = sum(value for _, value in ask(url, 'carma_gpu_energy_joules_total'))
    nobodys = sum(value for name in KEPT[-2:] for _, value in ask(url, name))
    assert 0.8 * counted <= joules_of_all + nobodys <= counted, f'{joules_of_all} + {nobodys} of {counted} J'
    print(*lines, sep='\n')
    print(f'{span / 3600:.2f} hours of node time in {len(clock)} scrapes; '
          f'{(joules_of_all + nobodys) / 1e3:.0f} of {counted / 1e3:.0f} kJ stored as somebody\'s or nobody\'s; '
          f'{crashes} crashes, {sum(user["retries"] for user in stats["users"])} retries')


def draw(url, path, time):
    with open(path, encoding='utf-8') as file:
        panels = json.load(file)['panels']
    for panel in panels:
        for target in panel.get('targets', []):
            query = target['expr']
            for variable, value in [('$__rate_interval', '20s'), ('$__range', '1m'), ('$instance', '.*'), ('$gpu', '.+'),
                                    ('$user', '.*')]:
                query = query.replace(variable, value)
            found = ask(url, query, time=time)
            assert found, f'{panel["title"]}: nothing is found by {query}'
            assert panel['type'] != 'stat' or len(found) == 1, f'{panel["title"]}: {found}'


url, action, *rest = sys.argv[1:]
if action == 'up':
    sys.exit(not ask(url, rest[0]))
try:
    if action == 'draw':
        draw(url, rest[0], rest[1])
    else:
        compare(url, rest[0], float(rest[1]))
except AssertionError as difference:
    sys.exit(str(difference))
