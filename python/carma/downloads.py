"""What a script asks a web server for. A text to learn from is stood in for by one as long as the usual small ones; all else
fails at once, as there is no network, and the reason names the address. Libraries try again and wait before: a capture
has no time for waiting."""

import io
import os
import string
import time
import urllib.parse

_LETTERS = string.ascii_letters + " .,;:!?'-&3$\n"  # as many different ones as English texts have
_LENGTH = 1 << 20
_PAUSE_S = 0.02  # of a script that waits for longer


def _text(address):
    """The stand-in's bytes, or None."""
    path = urllib.parse.urlsplit(str(getattr(address, "full_url", address))).path
    if not path.endswith((".txt", ".text")):
        return None
    return (_LETTERS * (_LENGTH // len(_LETTERS))).encode()


def changes(stack, put, recorder):
    """{module: change}"""

    def stood_in(address, error):
        data = _text(address)
        if data is None:
            raise error
        recorder.doubt(f"{str(address).rpartition('/')[2]} cannot be downloaded: a text of other words stands in", 100)
        return data

    def urllib_request(module):
        retrieve, opened = module.urlretrieve, module.urlopen

        def urlretrieve(url, filename=None, *args, **kwargs):
            try:
                return retrieve(url, filename, *args, **kwargs)
            except OSError as error:
                if filename is not None and os.path.isfile(filename):
                    recorder.doubt(f"{filename} cannot be downloaded again: it is taken as it is here", 50)
                    return filename, {}
                data = stood_in(url, error)
            if filename is None:
                filename = url.rpartition("/")[2]
            with open(filename, "wb") as file:
                file.write(data)
            return filename, {}

        def urlopen(url, *args, **kwargs):
            try:
                return opened(url, *args, **kwargs)
            except OSError as error:
                answer = io.BytesIO(stood_in(url, error))
            answer.status, answer.headers, answer.info = 200, {}, lambda: {}
            return answer

        put(stack, module, "urlretrieve", urlretrieve)
        put(stack, module, "urlopen", urlopen)

    def requests_sessions(module):
        original = module.Session.request

        def request(session, method, url, *args, **kwargs):
            try:
                return original(session, method, url, *args, **kwargs)
            except OSError as error:
                from requests.models import Response

                answer = Response()
                answer._content, answer.status_code, answer.encoding = stood_in(url, error), 200, "utf-8"
            return answer

        put(stack, module.Session, "request", request)

    sleep = time.sleep
    put(stack, time, "sleep", lambda seconds: sleep(min(seconds, _PAUSE_S)))
    return {"urllib.request": urllib_request, "requests.sessions": requests_sessions}
