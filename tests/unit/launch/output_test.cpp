// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/output.hpp"

#include <signal.h>
#include <unistd.h>

#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"
#include "support/temporary_folder.hpp"

namespace output_test {

using namespace acc;
using namespace acc::launcher;
using acc::test::read_all;

namespace {

void write_to(const Descriptor& fd, std::string_view text) {
  REQUIRE(fd);
  REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

struct Shown {
  boost::asio::io_context loop = {};
  Channel out = make_pipe();
  Channel err = make_pipe();

  Output make(const OutputPlan& plan, int workers) {
    return {loop, plan, workers, {out.workers.get(), err.workers.get()}};
  }
};

}  // namespace

TEST_CASE("output: a single worker has acc's own stdout, and its stderr is kept for the report", "[launch]") {
  Shown shown;
  Output output = shown.make({}, 1);
  const WorkerStreams streams = output.open(0, "", "");
  CHECK_FALSE(streams.out);
  write_to(streams.err, "oops\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.err.ours.get()) == "oops\n");
  CHECK(output.stderr_tail(0) == "oops\n");
}

TEST_CASE("output: both streams of several workers are forwarded", "[launch]") {
  Shown shown;
  Output output = shown.make({}, 2);
  const WorkerStreams zero = output.open(0, "", "");
  const WorkerStreams one = output.open(1, "", "");
  write_to(zero.out, "zero\n");
  write_to(one.out, "one\n");
  write_to(one.err, "bad\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.out.ours.get()) == "zero\none\n");
  CHECK(read_all(shown.err.ours.get()) == "bad\n");
  CHECK(output.stderr_tail(0).empty());
  CHECK(output.stderr_tail(1) == "bad\n");
}

TEST_CASE("output: a log that cannot be written is an error, and in later attempts a warning", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  const std::filesystem::path missing = folder.path() / "0";
  OutputPlan plan;
  plan.redirects.default_streams = Streams::both;
  Output output = shown.make(plan, 1);
  std::vector<std::string> warnings;
  output.on_warning([&](const std::string& text) { warnings.push_back(text); });
  CHECK_THROWS_AS(output.open(0, missing, ""), Error);
  output.end_attempt();
  const WorkerStreams streams = output.open(0, missing, "");
  CHECK(warnings ==
        std::vector<std::string>{(missing / "stderr.log").string() +
                                 ": cannot write the log: No such file or directory; its worker has "
                                 "no log files in this attempt"});
  write_to(streams.err, "oops\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.err.ours.get()) == "oops\n");
  CHECK(output.stderr_tail(0) == "oops\n");
}

TEST_CASE("output: both streams to the same file keep their order", "[launch]") {
  Shown shown;
  Output output(shown.loop, {}, 1, {shown.out.workers.get(), shown.out.workers.get()});
  const WorkerStreams streams = output.open(0, "", "");
  write_to(streams.out, "1\n");
  write_to(streams.err, "2\n");
  write_to(streams.out, "3\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.out.ours.get()) == "1\n2\n3\n");
}

TEST_CASE("output: a worker has a terminal for each stream for which acc has one", "[launch]") {
  boost::asio::io_context loop;
  const auto terminal = make_pseudo_terminal(0);
  REQUIRE(terminal);
  const Channel pipe = make_pipe();
  Output output(loop, {}, 2, {pipe.workers.get(), terminal->workers.get()});
  const WorkerStreams streams = output.open(0, "", "");
  CHECK(::isatty(streams.out.get()) == 0);
  CHECK(::isatty(streams.err.get()) == 1);
  write_to(streams.err, "bar\r");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(terminal->ours.get()) == "bar\r");
}

TEST_CASE("output: redirected streams are files, whose end is in the report", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  Output output = shown.make({.redirects = {.default_streams = Streams::both}}, 1);
  folder.write("stdout.log", "of an older attempt");
  const WorkerStreams streams = output.open(0, folder.path(), "");
  write_to(streams.out, "out\n");
  write_to(streams.err, "err\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(folder.read("stdout.log") == "out\n");
  CHECK(folder.read("stderr.log") == "err\n");
  CHECK(output.stderr_tail(0) == "err\n");
  CHECK(read_all(shown.out.ours.get()).empty());
}

TEST_CASE("output: what goes to a file is counted and reported under any name of the file", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "logs");
  Output output = shown.make({.redirects = {.default_streams = Streams::both}, .observed = true}, 1);
  const WorkerStreams streams = output.open(0, folder.path() / "logs", "");
  write_to(streams.out, "out\n");
  write_to(streams.err, "err\n");
  CHECK(output.written(0) == 8);
  std::filesystem::rename(folder.path() / "logs", folder.path() / "old");
  write_to(streams.out, "more\n");
  CHECK(output.written(0) == 13);
  std::filesystem::remove_all(folder.path() / "old");
  write_to(streams.err, "bad\n");
  CHECK(output.written(0) == 17);
  output.end_attempt();
  CHECK(output.stderr_tail(0) == "err\nbad\n");
}

TEST_CASE("output: a stream that goes to a file and the console is counted once", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  Output output = shown.make({.tee = {.default_streams = Streams::out}, .observed = true}, 1);
  const WorkerStreams streams = output.open(0, folder.path(), "");
  write_to(streams.out, "hello");
  output.end_attempt();
  CHECK(output.written(0) == 5);
}

TEST_CASE("output: tee'd streams go to both destinations", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  Output output = shown.make({.tee = {.default_streams = Streams::out}}, 2);
  const WorkerStreams streams = output.open(1, folder.path(), "[default1]:");
  write_to(streams.out, "hello");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(folder.read("stdout.log") == "hello");
  CHECK(read_all(shown.out.ours.get()) == "[default1]:hello\n");
}

TEST_CASE("output: a rank outside the filter is silent, but the end of its stderr is kept", "[launch]") {
  Shown shown;
  Output output = shown.make({.local_ranks_filter = {1}}, 2);
  const WorkerStreams streams = output.open(0, "", "");
  write_to(streams.out, "out\n");
  write_to(streams.err, "err\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.out.ours.get()).empty());
  CHECK(read_all(shown.err.ours.get()).empty());
  CHECK(output.stderr_tail(0) == "err\n");
}

TEST_CASE("output: a filter by rank uses the global rank", "[launch]") {
  Shown shown;
  Output output = shown.make({.ranks_filter = {5}}, 2);
  const WorkerStreams zero = output.open(0, "", "", 4);
  const WorkerStreams one = output.open(1, "", "", 5);
  write_to(zero.out, "four\n");
  write_to(one.out, "five\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(read_all(shown.out.ours.get()) == "five\n");
}

TEST_CASE("output: tee'd lines that match a filter are copied into one file per attempt", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  for (const auto* name : {"a0/0", "a0/1", "a1/0"}) std::filesystem::create_directories(folder.path() / name);
  Output output = shown.make({.tee = {.of_rank = {{0, Streams::out}, {1, Streams::both}}},
                              .duplicate_stdout_filters = {"apple"},
                              .duplicate_stderr_filters = {"zebra"}},
                             2);
  const WorkerStreams zero = output.open(0, folder.path() / "a0" / "0", "[0]:");
  const WorkerStreams one = output.open(1, folder.path() / "a0" / "1", "[1]:");
  write_to(zero.out, "apple 0\npear 0\n");
  write_to(zero.err, "zebra, but not tee'd\n");
  write_to(one.out, "apple 1\n");
  output.end_attempt();
  CHECK(folder.read("a0/filtered_stdout.log") == "[0]:apple 0\n[1]:apple 1\n");
  CHECK(std::filesystem::is_empty(folder.path() / "a0" / "filtered_stderr.log"));
  const WorkerStreams again = output.open(0, folder.path() / "a1" / "0", "[0]:");
  write_to(again.out, "apple again\n");
  output.end_attempt();
  CHECK(folder.read("a1/filtered_stdout.log") == "[0]:apple again\n");
}

TEST_CASE("output: with timestamps each line on the console begins with its time", "[launch]") {
  Shown shown;
  Output output = shown.make({.log_timestamps = true}, 1);
  const WorkerStreams streams = output.open(0, "", "unused");
  write_to(streams.out, "a\n");
  output.end_attempt();
  CHECK(output.finish());
  const std::string seen = read_all(shown.out.ours.get());
  REQUIRE(seen.size() == std::string("2026-11-21T07:43:37.262+0100 a\n").size());
  CHECK(seen.substr(10, 1) == "T");
  CHECK(seen.ends_with(" a\n"));
}

TEST_CASE("output: a slow reader is waited for asynchronously", "[launch]") {
  Shown shown;
  Output output = shown.make({}, 2);
  bool written = false;
  output.on_written([&] { written = true; });
  const std::string text(3U << 20U, 'x');
  output.announce(text + "\n");
  CHECK_FALSE(output.finish());
  std::string seen;
  while (!written) {
    seen += read_all(shown.err.ours.get());
    shown.loop.run_one();
  }
  seen += read_all(shown.err.ours.get());
  CHECK(seen == text + "\n");
}

TEST_CASE("output: what is not read can be given up", "[launch]") {
  Shown shown;
  Output output = shown.make({}, 2);
  output.announce("read\n");
  CHECK(output.finish());
  CHECK(output.drop().bytes == 0);
  const std::string text(3U << 20U, 'x');
  output.announce(text);
  CHECK_FALSE(output.finish());
  CHECK(output.unread() == text.size() + std::string("read\n").size());
  char first = 0;
  CHECK(::read(shown.err.ours.get(), &first, 1) == 1);
  CHECK(output.unread() == text.size() + std::string("read\n").size() - 1);
  const Output::Lost lost = output.drop();
  CHECK(lost.bytes + 1 + read_all(shown.err.ours.get()).size() == text.size() + std::string("read\n").size());
  CHECK(lost.reason == "the reader of standard error has not read on in time");
  CHECK(output.unread() == 0);
  CHECK(output.finish());
}

TEST_CASE("output: one warning when logs cannot be written", "[launch]") {
  Shown shown;
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.path() / "stdout.log");
  std::filesystem::create_symlink("/dev/full", folder.path() / "stderr.log");
  Output output = shown.make({.tee = {.default_streams = Streams::both}}, 1);
  std::vector<std::string> warnings;
  output.on_warning([&](const std::string& text) { warnings.push_back(text); });
  const WorkerStreams streams = output.open(0, folder.path(), ">");
  write_to(streams.out, "a\n");
  write_to(streams.err, "b\n");
  output.end_attempt();
  CHECK(warnings ==
        std::vector<std::string>{"a log file cannot be written: No space left on device; acc keeps trying"});
  CHECK(read_all(shown.out.ours.get()) == ">a\n");
  CHECK(output.lost().bytes == 4);
  CHECK(output.lost().reason == "No space left on device");
}

TEST_CASE("output: a lost reader matters only if no file gets the output", "[launch]") {
  ::signal(SIGPIPE, SIG_IGN);
  const test::TemporaryFolder folder;
  const bool tee = GENERATE(true, false);
  Shown shown;
  OutputPlan plan;
  if (tee) plan.tee.default_streams = Streams::both;
  Output output = shown.make(plan, 2);
  int lost = 0;
  std::vector<std::string> warnings;
  output.on_reader_lost([&] { ++lost; });
  output.on_warning([&](const std::string& text) { warnings.push_back(text); });
  const WorkerStreams streams = output.open(0, folder.path(), "");
  shown.out.ours.reset();
  write_to(streams.out, "a\n");
  output.end_attempt();
  CHECK(output.finish());
  CHECK(lost == (tee ? 0 : 1));
  CHECK(warnings ==
        (tee ? std::vector<std::string>{"the reader of standard output is gone; the log files still get it"}
             : std::vector<std::string>{}));
  if (tee) CHECK(folder.read("stdout.log") == "a\n");
  ::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("output: the end of a worker's output is just above until others have written more", "[launch]") {
  boost::asio::io_context loop;
  const auto terminal = make_pseudo_terminal(0);
  REQUIRE(terminal);
  const int fd = terminal->workers.get();
  Output output(loop, {}, 2, {fd, fd});
  const WorkerStreams zero = output.open(0, "", "");
  const WorkerStreams one = output.open(1, "", "");
  CHECK_FALSE(output.is_just_above(0));
  write_to(zero.err, "Traceback\nValueError: boom\n");
  loop.run_one();
  CHECK(output.is_just_above(0));
  write_to(one.out, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  loop.run_one();
  CHECK(output.is_just_above(0));
  write_to(one.out, "k\n");
  loop.run_one();
  CHECK_FALSE(output.is_just_above(0));
}

TEST_CASE("output: in a pipe or file nothing is visible just above", "[launch]") {
  Shown shown;
  Output output = shown.make({}, 2);
  const WorkerStreams zero = output.open(0, "", "");
  write_to(zero.err, "ValueError: boom\n");
  output.end_attempt();
  CHECK_FALSE(output.is_just_above(0));
}

}  // namespace output_test
