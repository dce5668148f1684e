"""GET /metrics for tests.

exposition.py fetch SOCKET              prints it
exposition.py open SOCKET               whether it has the same samples as OpenMetrics, packed
exposition.py check FILE                whether it follows the description of Prometheus's text format strictly
exposition.py grows BEFORE AFTER        whether every counter that carma keeps is there and has not fallen
exposition.py value FILE NAME [L=V...]  the one sample of that name with (at least) these labels
"""

import gzip
import re
import sys

from unix_http import Connection

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9]+(?:\.[0-9]+)?)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
UNESCAPED = {'\\\\': '\\', '\\"': '"', '\\n': '\n'}


OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8'


def fetch(path, expected='text/plain; version=0.0.4; charset=utf-8', **headers):
    connection = Connection(path, 30)
    connection.request('GET', '/metrics', headers={name.replace('_', '-'): value for name, value in headers.items()})
    answer = connection.getresponse()
    kind = answer.getheader('Content-Type')
    assert answer.status == 200 and kind == expected, (answer.status, kind)
    assert answer.getheader('Vary') == 'Accept, Accept-Encoding'
    assert answer.getheader('Content-Encoding') == ('gzip' if 'Accept_Encoding' in headers else None)
    return answer.read()


def open_metrics(path):
    """By the header of Prometheus 2.42. Put back into the text format it is that."""
    wish = 'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    text = gzip.decompress(fetch(path, OPEN, Accept=wish, Accept_Encoding='gzip')).decode()
    assert text.endswith('\n# EOF\n') and text.count('# EOF') == 1
    for family, unit in re.findall(r'^# UNIT (\S+) (\S+)$', text, re.M):
        assert family.endswith('_' + unit), (family, unit)
    assert not re.search(r'^# TYPE \S+_(seconds|bytes|joules|watts|ratio) .*\n(?!# UNIT)', text, re.M), 'a unit is not said'
    counters = set(re.findall(r'^# TYPE (\S+) counter$', text, re.M))
    back = re.sub(r'^# (HELP|TYPE) (\S+)', lambda line: line.group() + '_total' * (line.group(2) in counters), text, flags=re.M)
    back = re.sub(r'le="(\d+)\.0"', r'le="\1"', re.sub(r'^# (UNIT .*|EOF)\n', '', back, flags=re.M)).encode()
    check(back)
    plain, told = read(fetch(path, Accept='text/plain, application/openmetrics-text;q=0.5')), read(back)
    assert [(name, set(told[name][2])) for name in told] == [(name, set(plain[name][2])) for name in plain]


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f'not labels: {text}'
        name, value, comma = match.groups()
        assert name not in labels, f'label {name} twice: {text}'
        assert value, f'label {name} is empty: {text}'
        labels[name] = re.sub(r'\\[\\"n]', lambda found: UNESCAPED[found.group()], value)
        at = match.end()
        assert not (comma and at == len(text)), f'a comma at the end: {text}'
    return labels


def read(data):
    """{family: (type, help, {(sample name, sorted labels): value})}"""
    text = data.decode('utf-8')
    assert text.endswith('\n')
    families, current = {}, None
    for line in text[:-1].split('\n'):
        if line.startswith('# HELP '):
            current, about = line[7:].split(' ', 1)
            assert current not in families, f'{current} twice'
            families[current] = [None, about, {}]
        elif line.startswith('# TYPE '):
            name, kind = line[7:].split(' ')
            assert name == current and families[name][0] is None and kind in ('gauge', 'counter', 'histogram'), line
            families[name][0] = kind
        else:
            match = SAMPLE.match(line)
            assert match, f'not a sample: {line!r}'
            name, labels, value = match.groups()
            family = families[current]
            allowed = [current + end for end in ('_bucket', '_sum', '_count')] if family[0] == 'histogram' else [current]
            assert family[0] and name in allowed, f'{name} in the family {current}'
            key = name, tuple(sorted(labels_of(labels).items())) if labels is not None else ()
            assert key not in family[2], f'twice: {line}'
            family[2][key] = float(value)
    return families


def check(data):
    families = read(data)
    for name, (kind, about, samples) in families.items():
        assert samples, f'{name} has no samples'
        assert about.endswith('.'), f'{name}: {about}'
        assert (kind == 'counter') == name.endswith('_total'), f'{name} is a {kind}'
        assert kind != 'counter' or min(samples.values()) >= 0, f'{name} is negative'
        if kind == 'histogram':
            buckets = [(dict(labels)['le'], value) for (sample, labels), value in samples.items()
                       if sample.endswith('_bucket')]
            bounds = [float(bound) for bound, _ in buckets]
            counts = [count for _, count in buckets]
            assert bounds == sorted(bounds) and bounds[-1] == float('inf') and counts == sorted(counts), name
            assert counts[-1] == samples[name + '_count', ()], name


def grows(before, after):
    before, after = read(before), read(after)
    for name, (kind, about, samples) in before.items():
        # A series that begins anew says so, and a job's series end with its run.
        ended = ('process_', 'carma_job_gpu_', 'carma_job_victims', 'carma_job_energy')
        if kind == 'gauge' or ' began' in about or 'begins anew' in about or name.startswith(ended):
            continue
        for key, value in samples.items():
            now = after[name][2].get(key)
            assert now is not None and now >= value, f'{name}: {key} was {value}, is {now}'


def value(data, name, *labels):
    wanted = {tuple(label.split('=', 1)) for label in labels}
    found = [value for _, _, samples in read(data).values() for (sample, labels), value in samples.items()
             if sample == name and wanted <= set(labels)]
    assert len(found) == 1, f'{name} {labels}: {found}'
    print(f'{found[0]:.9f}'.rstrip('0').rstrip('.'))


def contents(path):
    with open(path, 'rb') as file:
        return file.read()


if __name__ == '__main__':
    action, *rest = sys.argv[1:]
    if action == 'fetch':
        sys.stdout.buffer.write(fetch(rest[0]))
    elif action == 'open':
        open_metrics(rest[0])
    elif action == 'check':
        check(contents(rest[0]))
    elif action == 'grows':
        grows(contents(rest[0]), contents(rest[1]))
    else:
        value(contents(rest[0]), *rest[1:])
