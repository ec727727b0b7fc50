"""The judge's side of one conversation with a runner or a launcher, in a sandbox that is used once. Trusted."""

from harness.judge.session.builds import Builds
from harness.judge.session.conversation import Session
from harness.judge.session.documents import documents
from harness.judge.session.fault import SubmissionFault
from harness.judge.session.handover import Handover
from harness.judge.session.sessions import Sessions

__all__ = ["Builds", "Handover", "Session", "Sessions", "SubmissionFault", "documents"]
