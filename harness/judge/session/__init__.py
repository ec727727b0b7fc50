"""The judge's side of the conversation with a runner or a launcher, whose sandbox is used once. Trusted."""

from harness.judge.session.build_request import BuildRequest
from harness.judge.session.builds import Builds
from harness.judge.session.conversation import Session
from harness.judge.session.documents import documents
from harness.judge.session.fault import SubmissionFault
from harness.judge.session.sessions import Sessions

__all__ = ["BuildRequest", "Builds", "Session", "Sessions", "SubmissionFault", "documents"]
