#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate_agent.py LIBRARY RESULT SOURCE...: writes RESULT/SOURCE with the faults below, and their names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.dont_write_bytecode = True
import mutation  # noqa: E402

AGENT = "launch/agent.cpp"
REPORT = "launch/launch_report.cpp"

# Name: source, what is replaced, and by what. What ends with a newline is statements.
MUTANTS = {
    # The end of workers.
    "a second signal does not kill": (AGENT, "    if (!is_repeat(arrived)) kill_now_ = true;\n", ""),
    "a copy of a signal kills": (AGENT, "at_once || is_copy", "at_once"),
    "a lost supervisor does not kill at once": (AGENT, "supervisor_lost_ = kill_now_ = true", "supervisor_lost_ = true"),
    "workers have no time to end": (AGENT, "parts_.processes.now() + plan_.shutdown_timeout", "parts_.processes.now()"),
    "workers that do not end are not killed": (AGENT, "  if (running_ > 0) kill_workers();\n", ""),
    "orphans that do not end are not killed": (AGENT, "processes.signal_orphans(SIGKILL)", "false"),
    "a signal does not reach workers that are being stopped": (AGENT, "  if (grace_end_) signal_workers(signal);\n", ""),
    "a worker starts although the job is to end": (
        AGENT, "    if (must_end()) return;\n    start_worker(local_rank);\n", "    start_worker(local_rank);\n"),
    # Workers that stand still.
    "a worker that stands still is not continued to end": (AGENT, "(hung_ || suspended_)", "hung_"),
    "a worker that starts in a suspended job runs": (
        AGENT, "  if (suspended_) parts_.processes.signal(local_rank, SIGSTOP);\n", ""),
    "a signal that comes while stopped workers end does not continue them": (
        AGENT, "  if (grace_end_ && suspended_) signal_workers(SIGCONT);\n", ""),
    # Notices.
    "a worker that a notice has ended has failed": (
        AGENT, "notice_that_ended(event.status)", "std::optional<int>()"),
    "a worker without a handler never hears of a notice": (
        AGENT, "    if (!handled) unreached.insert(local_rank);\n", ""),
    "a worker that starts after a notice never hears of it": (
        AGENT, "  for (const auto& [signal, known] : noticed_) unreached_[signal].insert(local_rank);\n", ""),
    # The cause.
    "the cause is not waited for": (AGENT, "    wait_for_local_cause();\n", ""),
    "the cause on another node is not waited for": (
        AGENT, "  if (report_.first_failure && is_consequence(*report_.first_failure)) wait_for_remote_cause();\n", ""),
    "a worker that lost another one is the cause": (
        REPORT, "!is_consequence(failure) ? 2 : is_lost_by_another(failure, failures) ? 1 : 0", "0"),
    "failures of an earlier attempt count": (AGENT, "  failed_.clear();\n", ""),
    "a failure is forgotten when the reader of the output is gone": (
        AGENT, "stop_signal_ || report_.first_failure || !failed_.empty()", "stop_signal_.has_value()"),
    # Error files.
    "a consequence that an error file names is not one": (
        REPORT, "file->consequence || names_lost_peer(file->message)", "names_lost_peer(file->message)"),
    "a message in an error file is never that of a consequence": (
        REPORT, "file->consequence || names_lost_peer(file->message)", "file->consequence"),
    "a torn error file hides what stderr says": (REPORT, "    if (file->valid) return false;\n", "    return false;\n"),
    "the times of error files do not count": (REPORT, "failed_before(failures[i], failures[cause])", "false"),
    "the microseconds of error files do not count": (REPORT, "is_exact(one) && is_exact(other)", "false"),
    "a stopped worker whose error file says why is not the cause": (
        AGENT, "failure.error_file || (only_consequences && own_status)", "only_consequences && own_status"),
    "the cause is waited for only if it is what the last one lost": (
        AGENT, "std::ranges::any_of(consequences, may_have_lost)", "may_have_lost(consequences.back())"),
    "error files of the first attempt count in each": (
        AGENT, "read_error_file(folder / std::to_string(local_rank) / \"error.json\")",
        "read_error_file(parts_.logs.attempt(0) / std::to_string(local_rank) / \"error.json\")"),
    # Rounds.
    "a stale result of the checks counts": (
        AGENT, "  if (must_end()) return false;\n  checked_.reset();\n", "  if (must_end()) return false;\n"),
    "workers start although a node failed its checks": (
        AGENT, "checked_->passed && plan_.preflight != Preflight::alone", "plan_.preflight != Preflight::alone"),
    "the end of an earlier round counts": (AGENT, "  round_over_.reset();\n", ""),
    "workers start again after a request to end": (AGENT, "!round_over_ || asked_to_end()", "!round_over_"),
    "there is one restart too many": (REPORT, "restarts >= plan.max_restarts", "restarts > plan.max_restarts"),
    "a hang that is only reported ends the attempt": (AGENT, "plan_.hang.action != OnHang::report", "true"),
    # The exit code.
    "what the nodes agree on after a request to end decides the code": (
        AGENT, "!round_over_->restart && !asked_to_end()", "!round_over_->restart"),
    "an end by acc stop asks for a requeue": (
        AGENT, "plan_.requeue_on_preemption && !stopped_by_user_", "plan_.requeue_on_preemption"),
    "a signal that ends the job does not decide its code": (
        REPORT, "  if (report.stop_signal) return 128 + *report.stop_signal;\n", ""),
    "a signal during the last output does not count": (AGENT, "  note_end();\n  return report_;\n", "  return report_;\n"),
    # The state in memory.
    "the copy of a state takes as long as it likes": (AGENT, "  if (flushing_) parts_.flush.interrupt();\n", ""),
    "the copy of a state outlives acc": (AGENT, "  end_flush();\n  report_finish();\n", "  report_finish();\n"),
}

mutation.write_copies(MUTANTS)
