// SPDX-License-Identifier: Apache-2.0
#include "acc/control/control_client.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace control_client_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;

namespace {

std::vector<JobView> jobs() {
  return {
      {.id = "train-12", .pid = 12, .agent = 13, .importing = ImportView{.pid = 15}, .ranks = {{.pid = 14}}},
      {.id = "train-120", .pid = 120}};
}

std::string refusal(const std::vector<JobView>& among, std::string_view name,
                    const std::vector<std::string>& silent = {}) {
  return error_of([&] { choose_job(among, silent, name); });
}

// A socket whose owner was killed, once what it returns is closed.
Descriptor leave_socket(const fs::path& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

}  // namespace

TEST_CASE("control_client: a job is chosen by id, unique prefix or pid", "[control]") {
  CHECK(choose_job(jobs(), {}, "train-12") == 0);
  CHECK(choose_job(jobs(), {}, "train-120") == 1);
  CHECK(choose_job(jobs(), {}, "12") == 0);
  CHECK(choose_job(jobs(), {}, "13") == 0);
  CHECK(choose_job(jobs(), {}, "14") == 0);
  CHECK(choose_job(jobs(), {}, "15") == 0);
  CHECK(choose_job({jobs()[0]}, {}, "tr") == 0);
  CHECK(choose_job({jobs()[0]}, {}, "") == 0);
}

TEST_CASE("control_client: the id of a job that has ended means no other one", "[control]") {
  const std::vector<JobView> longer_pid = {{.id = "train-120", .pid = 120}};
  const std::vector<JobView> same_pid = {{.id = "train-12-2", .pid = 12}};  // of another container
  CHECK(refusal(longer_pid, "train-12") == "train-12: no such job is running (running: train-120)");
  CHECK(refusal(same_pid, "train-12") == "train-12: no such job is running (running: train-12-2)");
  CHECK(refusal({}, "train-12", {"train-120"}).starts_with("train-12: no such job is running"));
  CHECK(refusal({{.id = "step10-7", .pid = 7}}, "step1").starts_with("step1: no such job is running"));
  CHECK(refusal({{.id = "9000-7", .pid = 7}}, "90").starts_with("90: no such job is running"));
  for (const char* name : {"train-", "train-120"}) CHECK(choose_job(longer_pid, {}, name) == 0);
  for (const char* name : {"train", "train-12-2"}) CHECK(choose_job(same_pid, {}, name) == 0);
  CHECK(choose_job({{.id = "run-2-4711", .pid = 4711}}, {}, "run-2") == 0);  // of the script run-2.py
}

TEST_CASE("control_client: a pid that a rank had is not the rank's any more", "[control]") {
  std::vector<JobView> views = jobs();
  views[0].ranks[0].ended = "exit code 0";
  views[1].ranks = {{.pid = 14}};
  CHECK(choose_job(views, {}, "14") == 1);
}

TEST_CASE("control_client: of a client of --hosts and its part here one is meant", "[control]") {
  std::vector<JobView> views = {{.id = "train-12", .pid = 12, .run_id = "x", .hosts = 2},
                                {.id = "train-15", .pid = 15, .run_id = "x", .ranks = {{.pid = 16}}}};
  for (const char* name : {"", "train"}) {
    CHECK(choose_job(views, {}, name) == 0);
    CHECK(choose_job(views, {}, name, JobPart::ranks) == 1);
  }
  CHECK(choose_job(views, {}, "train-12", JobPart::ranks) == 0);
  CHECK(choose_job(views, {}, "16") == 1);
  views[1].run_id = "y";  // another job
  CHECK(refusal(views, "train") == "train: matches several jobs (running: train-12, train-15)");
  views[1].run_id = "x";
  views.push_back({.id = "train-17", .run_id = "x"});  // two parts
  CHECK(refusal(views, "").starts_with("several jobs are running"));
}

TEST_CASE("control_client: an unknown or ambiguous name is refused with the candidates", "[control]") {
  CHECK(refusal(jobs(), "") == "several jobs are running: give the id of one (running: train-12, train-120)");
  CHECK(refusal(jobs(), "tr") == "tr: matches several jobs (running: train-12, train-120)");
  CHECK(refusal(jobs(), "x") == "x: no such job is running (running: train-12, train-120)");
  CHECK(refusal({}, "") == "no job is running (acc ps shows the running jobs)");
}

TEST_CASE("control_client: a silent job counts as one of several", "[control]") {
  const std::vector<JobView> running = {jobs()[0]};
  CHECK(refusal(running, "", {"other-7"}) ==
        "several jobs are running: give the id of one (running: train-12, other-7 (does not answer))");
  CHECK(refusal({}, "", {"other-7"}) == "the only job does not answer (running: other-7 (does not answer))");
  CHECK(refusal(running, "oth", {"other-7"}) ==
        "oth: the job does not answer (running: train-12, other-7 (does not answer))");
  CHECK(refusal(running, "t", {"test-7"}) ==
        "t: matches several jobs (running: train-12, test-7 (does not answer))");
  CHECK(choose_job(running, {"other-7"}, "train") == 0);
}

TEST_CASE("control_client: the socket of a dead job is removed", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  leave_socket(folder / "dead-1.sock").reset();
  std::ofstream(folder / "note.txt") << "kept";
  const FoundJobs result = find_jobs({folder, base.path() / "missing"});
  CHECK(result.running.empty());
  CHECK(result.silent.empty());
  CHECK(result.warnings.empty());
  CHECK_FALSE(fs::exists(folder / "dead-1.sock"));
  CHECK(fs::exists(folder / "note.txt"));
}

TEST_CASE("control_client: a folder that cannot be trusted is named", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  ::chmod(folder.c_str(), 0777);
  const FoundJobs result = find_jobs({folder});
  CHECK(result.running.empty());
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0].find("is open to other users") != std::string::npos);
}

TEST_CASE("control_client: a taken name of a folder is told where no other one can be used", "[control]") {
  if (::geteuid() != 0) {
    skip("this user is not root");
    return;
  }
  constexpr uid_t kUser = 12345;
  const TemporaryFolder base;
  fs::permissions(base.path(), fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add);
  const fs::path taken = base.path() / ("acc-" + std::to_string(kUser));
  const fs::path session = base.path() / "acc";  // after su
  const fs::path usable = base.path() / "usable";
  for (const fs::path& folder : {taken, session, usable}) ::mkdir(folder.c_str(), 0700);
  REQUIRE(::chown(usable.c_str(), kUser, kUser) == 0);
  const int result = in_child([&] {
    if (::setuid(kUser) != 0) return 1;
    const auto warnings = find_jobs({taken, session, base.path() / "missing"}).warnings;
    const bool is_told =
        warnings.size() == 1 && warnings[0].starts_with(taken.string() + ": belongs to another");
    if (!is_told || !error_of([&] { open_runtime_folder(taken, true); }).starts_with(warnings[0])) return 2;
    return find_jobs({session}).warnings.empty() && find_jobs({taken, usable}).warnings.empty() ? 0 : 3;
  });
  CHECK(result == 0);
}

TEST_CASE("control_client: root finds another user's job only behind a socket of that user", "[control]") {
  if (::geteuid() != 0) {
    skip("this user is not root");
    return;
  }
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc-12345";
  ::mkdir(folder.c_str(), 0700);
  const Descriptor socket(leave_socket(folder / "root-1.sock"));
  REQUIRE(::listen(socket.get(), 1) == 0);
  REQUIRE(::chown(folder.c_str(), 12345, 12345) == 0);
  const FoundJobs result = find_jobs(std::vector<RuntimeFolder>{{.path = folder, .owner = 12345}});
  CHECK(result.running.empty());
  CHECK(result.silent.empty());  // it was not asked
  CHECK(result.warnings.empty());
}

TEST_CASE("control_client: jobs that do not answer are named, and one after them is found", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  std::vector<Descriptor> silent;
  for (const char* name : {"a-1.sock", "b-2.sock", "c-3.sock"}) {
    silent.push_back(leave_socket(folder / name));
    REQUIRE(::listen(silent.back().get(), 1) == 0);
  }
  // The second of two containers that share the folder, and count their processes from 1.
  const Descriptor listening(leave_socket(folder / "d-4-2.sock"));
  REQUIRE(::listen(listening.get(), 1) == 0);
  const auto answer = [&](int attempt, const Descriptor& connection) {
    const std::string view = to_json(JobView{.id = "d-4-2", .pid = 4, .attempt = attempt}).dump() + "\n";
    std::array<char, 100> request = {};
    if (::recv(connection.get(), request.data(), request.size(), 0) > 0) write_all(connection.get(), view);
  };
  const auto listen_once = [&] { return Descriptor(::accept(listening.get(), nullptr, nullptr)); };
  std::thread answers([&] {
    {
      const Descriptor connection = listen_once();
      answer(0, connection);
      answer(1, connection);
    }
    answer(0, listen_once());
  });
  FoundJobs result = find_jobs({folder});
  CHECK(result.silent == std::vector<std::string>{"a-1", "b-2", "c-3"});
  REQUIRE(result.running.size() == 1);
  CHECK(result.running[0].view.id == "d-4-2");
  refresh(result.running);  // the view is as old as the wait for the others
  CHECK(result.running[0].view.attempt == 1);
  const auto start = std::chrono::steady_clock::now();
  CHECK(find_job({folder}, 4)->view.id == "d-4-2");  // without the others
  CHECK_FALSE(find_job({folder}, 44));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  answers.join();
  refresh(result.running);  // it has ended
  CHECK(result.running[0].view.attempt == 1);
}

TEST_CASE("control_client: a job that accepts nobody is silent, and is not waited for", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  const Descriptor socket(leave_socket(folder / "full-1.sock"));
  REQUIRE(::listen(socket.get(), 0) == 0);
  CHECK(find_jobs({folder}).silent ==
        std::vector<std::string>{"full-1"});  // waits in the queue, and gives up
  CHECK(find_jobs({folder}).silent == std::vector<std::string>{"full-1"});  // finds no room in it
  CHECK(fs::exists(folder / "full-1.sock"));
}

TEST_CASE("control_client: an answer that is none of acc's is a warning, and others are found", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  std::array<std::thread, 2> jobs;
  const std::array<std::string, 2> answers = {R"({"error":5})", to_json(JobView{.id = "b-2"}).dump()};
  const std::array<Descriptor, 2> sockets = {leave_socket(folder / "a-1.sock"),
                                             leave_socket(folder / "b-2.sock")};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(::listen(sockets[i].get(), 1) == 0);
    jobs[i] = std::thread([&answer = answers[i], &socket = sockets[i]] {
      const Descriptor connection(::accept(socket.get(), nullptr, nullptr));
      write_all(connection.get(), answer + "\n");
    });
  }
  const FoundJobs result = find_jobs({folder});
  for (std::thread& job : jobs) job.join();
  CHECK(result.warnings == std::vector<std::string>{"the reply of a job cannot be parsed"});
  REQUIRE(result.running.size() == 1);
  CHECK(result.running[0].view.id == "b-2");
  CHECK(result.running[0].agent == ::getpid());
  CHECK(result.running[0].user == ::geteuid());
}

TEST_CASE("control_client: a job that gives the id of another one is left out", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  ::mkdir(folder.c_str(), 0700);
  const Descriptor socket(leave_socket(folder / "a-1.sock"));
  REQUIRE(::listen(socket.get(), 1) == 0);
  std::thread job([&] {
    const Descriptor connection(::accept(socket.get(), nullptr, nullptr));
    write_all(connection.get(), to_json(JobView{.id = "b-2"}).dump() + "\n");
  });
  const FoundJobs result = find_jobs({folder});
  job.join();
  CHECK(result.running.empty());
  CHECK(result.warnings == std::vector<std::string>{"job a-1 gives another id, and is left out"});
}

TEST_CASE("control_client: an answer that is nested a million times is none", "[control]") {
  std::array<int, 2> ends = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  ControlClient client{Descriptor(ends[0])};
  std::thread job([end = Descriptor(ends[1])] {
    constexpr std::size_t kDepth = 1'000'000;
    write_all(end.get(), R"({"importing":)" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}\n");
  });
  CHECK(error_of([&] { client.read_message(); }) == "the reply of a job cannot be parsed");
  job.join();
}

TEST_CASE("control_client: a job that talks without end is not listened to for ever", "[control]") {
  std::array<int, 2> ends = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const Descriptor job(ends[0]);
  ControlClient client{Descriptor(ends[1])};
  const auto later = std::chrono::steady_clock::now() + std::chrono::hours(1);
  std::thread talks([&] {
    const std::string words(1U << 16U, 'x');
    while (::send(job.get(), words.data(), words.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  CHECK_FALSE(client.read_message(later));
  ::shutdown(job.get(), SHUT_RDWR);
  talks.join();
  CHECK_FALSE(client.read_message(std::chrono::steady_clock::now()));
}

}  // namespace control_client_test
