"""Usage: grafana.py SOURCE METRICS RULES

Looks at integrations/grafana/carma.json: it is a dashboard which Grafana can take in. It, the alerts and the queries of
docs/prometheus.md ask only for metrics and labels which METRICS (GET /metrics) has. Writes the queries as RULES,
for promtool to parse."""

import json
import pathlib
import re
import sys

from exposition import contents, read

WORDS = {'sum', 'avg', 'max', 'min', 'by', 'without', 'on', 'ignoring', 'group_left', 'group_right', 'rate', 'irate',
         'increase', 'histogram_quantile', 'clamp_min', 'clamp_max', 'label_replace', 'and', 'or', 'unless', 'topk', 'count',
         'le', 'time', 'vector', 'scalar', 'bool'}
# Labels that Prometheus adds to each series, and series that it makes itself.
OF_TARGETS = {'instance', 'job'}
OF_SCRAPES = {'up'}
OF_OTHERS = 'DCGM_'
VARIABLES = {'$__rate_interval': '5m', '$__interval': '1m', '$__range': '1h', '$instance': 'x', '$user': 'x', '$gpu': 'x'}


def without_variables(query):
    for variable, stands_for in VARIABLES.items():
        query = query.replace(variable, stands_for)
    assert '$' not in query, f'a variable that is not known: {query}'
    return query


def check_query(query, where, metrics, labels):
    query = without_variables(query)
    for used in re.findall(r'\{([^}]*)\}', query):
        for name in re.findall(r'([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)', used):
            assert name in labels, f'{where}: no metric has the label {name}: {query}'
    for used in re.findall(r'(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)', query):
        for name in filter(None, re.split(r'[\s,]+', used)):
            assert name in labels, f'{where}: no metric has the label {name}: {query}'
    bare = re.sub(r'"[^"]*"', '""', re.sub(r'\{[^}]*\}', '', query))
    bare = re.sub(r'(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)', '', bare)
    bare = re.sub(r'\[[^\]]*\]', '', bare)
    found = 0
    for name in re.findall(r'(?<![\w.])[a-zA-Z_]\w*', bare):
        if name.startswith(OF_OTHERS):
            continue
        if name not in WORDS:
            assert name in metrics, f'{where}: there is no metric {name}: {query}'
            found += 1
    assert found, f'{where}: {query} asks for nothing'
    return query


def panels_of(dashboard):
    for panel in dashboard['panels']:
        yield panel
        yield from panel.get('panels', [])


def check_layout(dashboard):
    """Each panel has its place, none lies on another, all within Grafana's 24 columns; ids are unique."""
    taken, ids = {}, set()
    for panel in dashboard['panels']:
        place = panel['gridPos']
        assert panel['id'] not in ids, panel['id']
        ids.add(panel['id'])
        assert place['x'] >= 0 and place['w'] > 0 and place['x'] + place['w'] <= 24, panel['title']
        for x in range(place['x'], place['x'] + place['w']):
            for y in range(place['y'], place['y'] + place['h']):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel['title']


def check_dashboard(dashboard, metrics, labels):
    """Yields its queries."""
    assert dashboard['id'] is None and re.fullmatch(r'[\w-]{1,40}', dashboard['uid']) and dashboard['title']
    assert dashboard['schemaVersion'] >= 36
    variables = {variable['name']: variable for variable in dashboard['templating']['list']}
    assert variables['datasource']['type'] == 'datasource' and variables['datasource']['query'] == 'prometheus'
    check_layout(dashboard)
    for variable in variables.values():
        if variable['type'] == 'query':
            asked = variable['query']['query']
            name, label = re.fullmatch(r'label_values\((\w+)(?:\{[^}]*\})?, (\w+)\)', asked).groups()
            assert name in metrics and label in labels, asked
            assert variable['datasource']['uid'] == '${datasource}', variable['name']
    for panel in panels_of(dashboard):
        if panel['type'] == 'row':
            continue
        assert panel['title'] and panel['description'].endswith('.'), panel['title']
        assert panel['datasource'] == {'type': 'prometheus', 'uid': '${datasource}'}, panel['title']
        assert panel['fieldConfig']['defaults']['unit'], panel['title']
        letters = [target['refId'] for target in panel['targets']]
        assert letters and len(set(letters)) == len(letters), panel['title']
        for target in panel['targets']:
            used = set(re.findall(r'\$(\w+)', target['expr'])) - {'__rate_interval', '__interval', '__range'}
            assert used <= set(variables), f"{panel['title']}: {used - set(variables)}"
            for label in re.findall(r'\{\{\s*(\w+)\s*\}\}', target.get('legendFormat', '')):
                assert label in labels, f"{panel['title']}: legend of {label}"
            yield check_query(target['expr'], panel['title'], metrics, labels)


def queries_of(page):
    """Those of the table of questions."""
    table = page.split('\n## Questions and their queries\n')[1].split('\n## ')[0]
    found = re.findall(r'^\| .* \| `(.*)` \|$', table, re.MULTILINE)
    assert len(found) == table.count('\n| '), 'a line of docs/prometheus.md without a query'
    return found


def main(source, path, rules):
    source = pathlib.Path(source)
    metrics, labels = set(OF_SCRAPES), set(OF_TARGETS)
    for _, _, samples in read(contents(path)).values():
        for name, have in samples:
            metrics.add(name)
            labels.update(label for label, _ in have)
    text = (source / 'integrations' / 'prometheus' / 'carma.rules.yml').read_text(encoding='utf-8')
    for query in re.findall(r'^ *expr: (.*)$', text, re.MULTILINE):
        check_query(query, 'alert', metrics, labels)
    dashboard = json.loads((source / 'integrations' / 'grafana' / 'carma.json').read_text(encoding='utf-8'))
    queries = list(check_dashboard(dashboard, metrics, labels))
    for query in queries_of((source / 'docs' / 'prometheus.md').read_text(encoding='utf-8')):
        queries.append(check_query(query, 'docs/prometheus.md', metrics, labels))
    with open(rules, 'w', encoding='utf-8') as out:
        out.write('groups:\n  - name: dashboard\n    rules:\n')
        for number, query in enumerate(queries):
            out.write(f'      - record: query:{number}\n        expr: {json.dumps(query)}\n')


main(*sys.argv[1:])
