// SPDX-License-Identifier: Apache-2.0
#include "acc/control/log_reader.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace log_reader_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

using Kind = StreamDestination::Kind;

/// The agent's side is written before the reader looks.
struct Peer {
  Peer() {
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    agent = Descriptor(ends[0]);
    job = std::make_unique<RunningJob>(RunningJob{{.id = "job-1"}, ControlClient(Descriptor(ends[1]))});
  }
  void sends(const std::string& text) const {
    REQUIRE(::send(agent.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  LogReader reader(std::vector<int> ranks = {}) {
    return {*job, std::move(ranks),
            [this](int rank, StreamName stream, std::string_view bytes) {
              output +=
                  std::to_string(rank) + (stream == StreamName::out ? "o:" : "e:") + std::string(bytes) + "|";
            },
            [this](const std::string& text) { notes.push_back(text); }};
  }

  LogReader::OnBreak on_break() {
    return [this](int rank, StreamName stream) {
      output += std::to_string(rank) + (stream == StreamName::out ? "o breaks|" : "e breaks|");
    };
  }

  Descriptor agent = {};
  std::unique_ptr<RunningJob> job = {};
  std::string output = {};
  std::vector<std::string> notes = {};
};

}  // namespace

TEST_CASE("log_reader: files are read, and the agent is asked for the rest", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {
      {.rank = 0, .out = {Kind::file, logs.write("out", "from a file")}, .err = {Kind::memory, {}}}};
  peer.sends(R"({"rank":0,"stream":"stderr","skipped":0,"bytes":4})"
             "\nkept");
  // What is tee'd comes through the agent too.
  peer.sends(R"({"rank":0,"stream":"stdout","skipped":0,"bytes":11})"
             "\nfrom a file");
  peer.sends("{\"end\":true}\n");
  peer.reader().read();
  CHECK(peer.output == "0o:from a file|0e:kept|");
  CHECK(peer.notes.empty());
}

TEST_CASE("log_reader: reports output that is not kept", "[control]") {
  Peer peer;
  peer.job->view.ranks = {{.rank = 3, .out = {Kind::passed, {}}, .err = {Kind::discarded, {}}}};
  peer.sends(R"({"rank":3,"stream":"stderr","skipped":7,"bytes":1})"
             "\nx{\"end\":true}\n");
  peer.reader().read();
  REQUIRE(peer.notes.size() == 3);
  CHECK(peer.notes[0].starts_with("standard output of rank 3 is acc's own and is not kept"));
  CHECK(peer.notes[1].starts_with("standard error of rank 3 is filtered out"));
  CHECK(peer.notes[2] == "rank 3: 7 bytes were not kept");
}

TEST_CASE("log_reader: a file that cannot be read is told and a failure", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  const std::string file = (logs.path() / "none").string();
  peer.job->view.ranks = {{.rank = 0, .out = {Kind::file, file}, .err = {Kind::memory, {}}}};
  peer.sends("{\"end\":true}\n");
  LogReader reader = peer.reader();
  reader.read();
  CHECK(reader.has_failed());
  CHECK(peer.notes == std::vector<std::string>{"standard output of rank 0 cannot be read from " + file +
                                               ": No such file or directory"});
}

TEST_CASE("log_reader: follows files and the agent over a restart to the end", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {
      {.rank = 0, .out = {Kind::file, logs.write("a", "first ")}, .err = {Kind::memory, {}}}};
  RankView later = peer.job->view.ranks[0];
  later.out.file = logs.write("b", "second");
  peer.sends(nlohmann::json{{"started", to_json(later)}}.dump() + "\n");
  peer.sends(R"({"rank":0,"stream":"stderr","skipped":0,"bytes":3})"
             "\nend{\"ended\":9}\n");
  CHECK(peer.reader().follow() == 9);
  CHECK(peer.output.find("0o:first |") == 0);
  CHECK(peer.output.find("0o:second|") != std::string::npos);
  CHECK(peer.output.find("0e:end|") != std::string::npos);
}

TEST_CASE("log_reader: who follows is told of a restart, between the output of the attempts", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {
      {.rank = 0, .pid = 10, .out = {Kind::file, logs.write("a", "")}, .err = {Kind::memory, {}}}};
  RankView later = peer.job->view.ranks[0];
  // The first is what whoever follows is sent at once.
  peer.sends(nlohmann::json{{"started", to_json(later)}}.dump() + "\n");
  LogReader reader = peer.reader();
  logs.write("a", "first");
  later.pid = 11;
  later.out.file = logs.write("b", "second");
  peer.sends(nlohmann::json{{"started", to_json(later)}}.dump() + "\n{\"ended\":9}\n");
  CHECK(reader.follow([](int, StreamName) {}, peer.on_break()) == 9);
  CHECK(peer.output == "0o:first|0o breaks|0e breaks|0o:second|");
}

TEST_CASE("log_reader: an attempt whose file has the name of the one before is followed", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  const auto file = logs.write("a", "first");
  peer.job->view.ranks = {{.rank = 0, .pid = 10, .out = {Kind::file, file}, .err = {Kind::memory, {}}}};
  RankView later = peer.job->view.ranks[0];
  LogReader reader = peer.reader();
  std::filesystem::remove(file);
  logs.write("a", "second");
  later.pid = 11;
  peer.sends(nlohmann::json{{"started", to_json(later)}}.dump() + "\n{\"ended\":9}\n");
  CHECK(reader.follow() == 9);
  CHECK(peer.output == "0o:first|0o:second|");
}

TEST_CASE("log_reader: who follows keeps the files of one attempt open", "[control]") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const TemporaryFolder logs;
  Peer peer;
  RankView rank = {.rank = 0,
                   .pid = 10,
                   .out = {Kind::file, logs.write("out0", "0")},
                   .err = {Kind::file, logs.write("err0", "")}};
  peer.job->view.ranks = {rank};
  LogReader reader = peer.reader();
  const auto of_one_attempt = open_files();
  for (int attempt = 1; attempt < 4; ++attempt) {
    const std::string number = std::to_string(attempt);
    rank.pid = 10 + attempt;
    rank.out.file = logs.write("out" + number, number);
    rank.err.file = logs.write("err" + number, "");
    peer.sends(nlohmann::json{{"started", to_json(rank)}}.dump() + "\n");
  }
  peer.sends("{\"ended\":9}\n");
  CHECK(reader.follow() == 9);
  CHECK(peer.output == "0o:0|0o:1|0o:2|0o:3|");
  CHECK(open_files() == of_one_attempt);
}

TEST_CASE("log_reader: a file that was cut is read from its beginning, after a note", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  const auto file = logs.write("out", "line 1\nline 2\n");
  peer.job->view.ranks = {{.rank = 0, .out = {Kind::file, file}, .err = {Kind::memory, {}}}};
  const auto on_silence = [&](int, StreamName) {
    logs.write("out", "line 3\n");
    peer.sends("{\"ended\":0}\n");
  };
  CHECK(peer.reader().follow(on_silence, peer.on_break()) == 0);
  CHECK(peer.output == "0o:line 1\nline 2\n|0o breaks|0o:line 3\n|");
  REQUIRE(peer.notes.size() == 1);
  CHECK(peer.notes[0].starts_with("standard output of rank 0: its log file was cut"));
}

TEST_CASE("log_reader: an end of the output that was not sent is noted", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {
      {.rank = 0, .out = {Kind::file, logs.write("out", "all of it")}, .err = {Kind::memory, {}}}};
  peer.sends("{\"rank\":0,\"stream\":\"stderr\",\"skipped\":0,\"bytes\":100}\nthe first w");
  const std::string note =
      "the connection to the job has ended, and the end of its output may be missing; --tee or --redirects "
      "keeps it in a file";
  SECTION("to one who follows") {
    LogReader reader = peer.reader();
    peer.agent.reset();
    CHECK_FALSE(reader.follow([](int, StreamName) {}, peer.on_break()));
    CHECK(peer.output == "0o:all of it|0e:the first w|0e breaks|");
    CHECK(peer.notes == std::vector{note});
  }
  SECTION("to one who does not") {
    LogReader reader = peer.reader();
    peer.agent.reset();
    reader.read();
    CHECK(peer.output == "0o:all of it|0e:the first w|");
    CHECK(peer.notes == std::vector{note});
  }
  SECTION("unless files have all of it") {
    peer.job->view.ranks[0].err = {Kind::file, logs.write("err", "")};
    LogReader reader = peer.reader();
    peer.agent.reset();
    CHECK_FALSE(reader.follow());
    CHECK(peer.notes.empty());
  }
}

TEST_CASE("log_reader: who follows is told of silence, once until more comes", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {{.rank = 0, .out = {Kind::file, logs.write("a", "Compiling...")}}};
  int silences = 0;
  const auto on_silence = [&](int, StreamName) {
    ++silences;
    peer.sends(silences == 1 ? "{\"rank\":0,\"stream\":\"stderr\",\"skipped\":0,\"bytes\":1}\nx"
                             : "{\"ended\":0}\n");
  };
  CHECK(peer.reader().follow(on_silence) == 0);
  CHECK(peer.output == "0o:Compiling...|0e:x|");
  CHECK(silences == 2);
}

TEST_CASE("log_reader: who follows is told of a silent stream also while another one never is", "[control]") {
  const TemporaryFolder logs;
  Peer peer;
  peer.job->view.ranks = {
      {.rank = 0, .out = {Kind::file, logs.write("a", "Overwrite? ")}, .err = {Kind::memory, {}}}};
  const std::string piece = "{\"rank\":0,\"stream\":\"stderr\",\"skipped\":0,\"bytes\":1}\nx";
  bool is_told = false;
  const auto on_bytes = [&](int, StreamName stream, std::string_view) {
    if (stream == StreamName::err && !is_told) peer.sends(piece);
  };
  const auto on_silence = [&](int rank, StreamName stream) {
    CHECK(rank == 0);
    CHECK(stream == StreamName::out);
    is_told = true;
    peer.sends("{\"ended\":0}\n");
  };
  peer.sends(piece);
  CHECK(LogReader(*peer.job, {}, on_bytes, [](const std::string&) {}).follow(on_silence) == 0);
  CHECK(is_told);
}

TEST_CASE("log_reader: a rank that writes faster than it is read has an end", "[control]") {
  const TemporaryFolder logs;
  const auto file = logs.write("out", "first");
  Peer peer;
  peer.job->view.ranks = {{.rank = 0, .out = {Kind::file, file}, .err = {Kind::memory, {}}}};
  peer.sends("{\"end\":true}\n");
  std::string output;
  const auto on_bytes = [&](int, StreamName, std::string_view bytes) {
    output += bytes;
    REQUIRE(output.size() < 100);
    std::ofstream(file, std::ios::app) << "more";
  };
  LogReader(*peer.job, {}, on_bytes, [](const std::string&) {}).read();
  CHECK(output == "first");
}

TEST_CASE("log_reader: follows files where no inotify instance is left", "[control]") {
  const TemporaryFolder logs;
  const auto file = logs.write("out", "first");
  Peer peer;
  peer.job->view.ranks = {{.rank = 0, .out = {Kind::file, file}, .err = {Kind::memory, {}}}};
  const int code = in_child([&] {
    // In a user namespace of its own, so that no other process is short of them.
    std::ofstream limit;
    if (::unshare(CLONE_NEWUSER) == 0) limit.open("/proc/sys/user/max_inotify_instances");
    if (!(limit << "0" << std::flush)) return kSkipped;
    ::alarm(60);
    const auto on_bytes = [&](int, StreamName, std::string_view bytes) {
      if (bytes == "second") ::_exit(0);
      std::ofstream(file, std::ios::app) << "second";
    };
    LogReader(*peer.job, {}, on_bytes, [](const std::string&) {}).follow();
    return 1;
  });
  if (code == kSkipped) {
    skip("no user namespace can be made");
    return;
  }
  CHECK(code == 0);
}

TEST_CASE("log_reader: a job that is killed ends without a code", "[control]") {
  Peer peer;
  peer.agent.reset();
  CHECK_FALSE(peer.reader().follow());
}

TEST_CASE("log_reader: a rank that is not here is refused", "[control]") {
  Peer peer;
  CHECK(error_of([&] { peer.reader({4}); }) ==
        "rank 4: job job-1 has no such rank on this machine (acc ps job-1)");
}

}  // namespace log_reader_test
