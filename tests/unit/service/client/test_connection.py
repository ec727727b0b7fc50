"""A connection to a server that may be slow, broken or hostile."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.verdict import Verdict
from kernelmark import __version__
from kernelmark.client import connection, reading
from kernelmark.client.connection import Connection, Refused, Unreachable
from kernelmark.project.documents import written
from kernelmark.service.accounts import InvitationAcceptance, Me
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SubmissionStatus
from tests.answering import Answered, answering
from tests.ranked import rank
from tests.unit.service.client.conftest import ENDS, TOKEN
from tests.unit.service.client.fake import Fake
from tests.verdicts import accepted, chained

ME = Me(name="ada", role="participant", scopes=("submit", "read"), ends=ENDS)
SENT = InvitationAcceptance(secret="kmi_x")
HOSTILE = "\x1b]0;owned\x07\r\nkernelmark: error\u202e"


def test_a_token_is_sent_and_netrc_and_proxies_are_not_used(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login eve password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    fake.answers("GET me", ME)
    for token in (TOKEN, None):
        with Connection(fake.origin, token) as connected:
            assert connected.get("me", Me) == ME
    assert [asked.headers.get("authorization") for asked in fake.asked] == [f"Bearer {TOKEN}", None]


def test_no_netrc_is_read_for_another_machine_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login eve password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Connection("https://bench.example.org") as connected:
        session = connected._session
        prepared = session.prepare_request(connection.requests.Request("GET", "https://bench.example.org/"))
        assert session.trust_env, "proxies are those of the environment"
    assert "Authorization" not in prepared.headers


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(fake: Fake, status: int) -> None:
    with Fake().serving() as other:
        other.answers("GET me", ME)
        fake.answers("GET me", Answered(status, b"", {"Location": f"{other.origin}/api/v1/me"}))
        with Connection(fake.origin, TOKEN) as connected, pytest.raises(Unreachable, match=f"answers {status}"):
            connected.get("me", Me)
    assert (len(fake.asked), other.asked) == (1, [])


@pytest.mark.parametrize("target", ["http://[", "\xff"])
def test_where_a_redirect_leads_is_not_read(fake: Fake, target: str) -> None:
    fake.answers("GET me", Answered(302, b"", {"Location": target}))
    with Connection(fake.origin, TOKEN) as connected, pytest.raises(Unreachable, match="answers 302"):
        connected.get("me", Me)


def test_the_body_of_a_redirect_is_bounded(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_BYTES", 1000)
    fake.answers("GET me", Answered(302, bytes(1001), {"Location": "/elsewhere"}))
    with Connection(fake.origin, TOKEN) as connected, pytest.raises(Unreachable, match="more than 1,000 bytes"):
        connected.get("me", Me)


def test_what_is_safe_to_repeat_is_repeated_until_it_is_answered(fake: Fake) -> None:
    starting = Answered(502, b"<html>Bad gateway</html>")
    fake.answers("GET me", starting, None, Answered(503, b""), ME)
    fake.answers("POST submissions", None, starting, ME)
    with Connection(fake.origin, TOKEN) as connected:
        assert connected.get("me", Me) == ME
        key = {"Idempotency-Key": "1"}
        assert connected.post("submissions", SENT, Me, headers=key, repeatable=True) == ME
    assert len(fake.of("GET me")) == 4
    assert [asked.headers["idempotency-key"] for asked in fake.of("POST submissions")] == ["1"] * 3


def test_a_worker_that_starts_is_waited_for(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "_LONGEST_PAUSE_S", 0.001)
    starting = Refusal(503, "worker-starting", "the server", "is starting its worker", "try again in a moment")
    fake.answers("POST submissions", *[starting] * 5, ME)
    with Connection(fake.origin, TOKEN, patience_s=0) as connected:
        assert connected.post("submissions", SENT, Me, repeatable=True) == ME
        fake.answers("GET me", Answered(503, b""))
        with pytest.raises(Unreachable, match="answers 503"):
            connected.get("me", Me)
    assert (len(fake.of("POST submissions")), len(fake.of("GET me"))) == (6, 1)
    assert capsys.readouterr().err == f"waiting: {fake.origin}: the server is starting its worker\n"


def test_what_may_be_done_twice_is_sent_once(fake: Fake) -> None:
    fake.answers("POST invitations/accept", None, ME)
    with Connection(fake.origin) as connected, pytest.raises(Unreachable):
        connected.post("invitations/accept", SENT, Me)
    assert len(fake.asked) == 1


def test_nothing_is_repeated_for_ever(fake: Fake) -> None:
    fake.answers("GET me", None)
    with Connection(fake.origin, patience_s=2.0) as connected, pytest.raises(Unreachable, match="no answer from"):
        connected.get("me", Me)
    assert 2 <= len(fake.asked) < 20


def test_a_refusal_is_an_error_of_the_user_and_safe_to_print(fake: Fake) -> None:
    fake.answers("GET me", Refusal(429, "limit-reached", f"x{HOSTILE}", "is spent", f"wait{HOSTILE}", retry_after_s=60))
    with Connection(fake.origin, TOKEN) as connected, pytest.raises(Refused) as caught:
        connected.get("me", Me)
    assert (caught.value.status, caught.value.code, caught.value.retry_after_s) == (429, "limit-reached", 60)
    assert str(caught.value) == (
        r"x\x1b]0;owned\x07 kernelmark: error\u202e is spent; wait\x1b]0;owned\x07 kernelmark: error\u202e"
    )
    assert isinstance(caught.value, UsageError)
    assert len(fake.asked) == 1


def test_our_fault_is_said_as_such(fake: Fake) -> None:
    fake.answers("GET me", Refusal(500, "unexpected", "the server", "failed", "tell the organizers"))
    with Connection(fake.origin, TOKEN) as connected, pytest.raises(HarnessError, match="failed; tell the organizers"):
        connected.get("me", Me)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "is not what this version of kernelmark expects"),
        (b"<html>\x1b[31m</html>", "is not what this version of kernelmark expects"),
        (b"[" * 100_000, "is not what this version of kernelmark expects"),
        (b'{"name": "ada"}', "expects (role: Field required)"),
        (b'{"name": NaN}', "is not what this version of kernelmark expects"),
        (Answered(404, b"<html>\x1b[31m"), "answers 404 Not Found; is it the address of a server of kernelmark?"),
        (Answered(200, b"\x1f\x8b", {"Content-Encoding": "gzip"}), "in an encoding that was not asked for"),
        (b"x" * 2000, "answers with more than 1,000 bytes"),
    ],
)
@pytest.mark.parametrize("tolerant", [False, True])
def test_an_answer_that_is_none_is_one_line(
    answer: object, message: str, tolerant: bool, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_BYTES", 100_001 if isinstance(answer, bytes) and b"[" in answer else 1000)
    fake.answers("GET me", answer)
    with Connection(fake.origin, tolerant=tolerant) as connected, pytest.raises(HarnessError) as caught:
        connected.get("me", Me)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_fields_of_a_later_version_are_left_out_where_that_is_wanted(fake: Fake) -> None:
    fake.answers("GET me", {**ME.model_dump(mode="json"), "later": 1})
    with Connection(fake.origin, tolerant=True) as connected:
        assert connected.get("me", Me) == ME
    with Connection(fake.origin) as connected, pytest.raises(HarnessError, match="later: Extra inputs"):
        connected.get("me", Me)


def test_a_verdict_and_a_list_are_read_without_the_fields_of_a_later_version(fake: Fake) -> None:
    verdict = accepted(problem="double")
    status = SubmissionStatus(
        run=verdict.run, problem="double", mode="submit", pool="Fake GPU", author="ada", received_at=ENDS,
        on_time=True, state="leased", version=1,
    )  # fmt: skip
    later = {"later": [1, 2]}
    row = json.loads(status.model_dump_json()) | {"progress": {"stage": "test", "done": 1, "total": 2, "label": ""}}
    fake.answers("GET submissions", {"items": [{**row, **later, "progress": {**row["progress"], **later}}], **later})
    document = json.loads(verdict.to_json())
    document["benchmarks"][0] |= later
    fake.answers("GET runs/1", {**document, **later})
    [table] = json.loads(written("board", rank(chained(verdict))))["items"]
    table["rows"][0] |= later
    fake.answers("GET boards", {"items": [{**table, **later}]})
    with Connection(fake.origin, tolerant=True) as connected:
        [found] = reading.own(connected)
        assert found == status.model_copy(update={"progress": found.progress})
        assert found.progress is not None
        assert reading.verdict_of(connected, "runs/1", Verdict.from_json) == verdict
        assert reading.tables(connected, None)[0].rows[0].run == verdict.run


def test_both_versions_are_named_where_they_do_not_fit(fake: Fake) -> None:
    version = {"Kernelmark-Version": "99.0\x1b[31m"}
    fake.answers("GET me", Answered(200, b'{"name": "ada"}', version))
    with Connection(fake.origin, tolerant=True) as connected, pytest.raises(HarnessError) as caught:
        connected.get("me", Me)
    assert str(caught.value).isprintable()
    assert r"the server has kernelmark 99.0\x1b[31m, and" in str(caught.value)
    assert f"and this is {__version__}: install the server's" in str(caught.value)


def test_nobody_listens() -> None:
    with Fake().serving() as gone:
        origin = gone.origin
    with Connection(origin, patience_s=0) as connected, pytest.raises(Unreachable, match=r"\(Connection refused\)"):
        connected.get("me", Me)


@pytest.mark.parametrize(
    "address",
    ["http://bench.example.org", "ftp://x", "bench", "https://", "https://eve:x@bench.org", "https://b\u00e9nch.org",
     "https://x/path", "http://127.0.0.1.example.org", "https://x:99999", "http://localhost@evil.org"],
)  # fmt: skip
def test_an_address_to_which_no_token_goes(address: str) -> None:
    with pytest.raises(UsageError, match="is not a server's address"):
        Connection(address, TOKEN)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server with a certificate that nobody else trusts: its origin, and the certificate."""
    if shutil.which("openssl") is None and os.environ.get("CI") != "true":
        pytest.skip("openssl makes the certificate: apt-get install openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(lambda _: Answered(200, ME.model_dump_json().encode()), context) as origin:
        yield origin, certificate


def test_a_certificate_is_trusted_only_if_the_user_says_so(tls: tuple[str, Path]) -> None:
    origin, certificate = tls
    with Connection(origin, TOKEN) as connected, pytest.raises(Unreachable, match="is not trusted here"):
        connected.get("me", Me)
    with Connection(origin, TOKEN, ca=certificate) as connected:
        assert connected.get("me", Me) == ME
    with pytest.raises(UsageError, match="is not a file of certificates"):
        Connection(origin, TOKEN, ca=certificate.parent / "none")
