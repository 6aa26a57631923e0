// SPDX-License-Identifier: Apache-2.0
#include "acc/control/control_server.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <boost/asio/post.hpp>
#include <thread>

#include "acc/base/log.hpp"
#include "acc/control/control_client.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/no_more_descriptors.hpp"
#include "support/temporary_folder.hpp"

namespace control_server_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// A job without processes, whose event loop runs in another thread.
struct Job {
  explicit Job(fs::path runtime_folder) : folder(std::move(runtime_folder)) {
    view.ranks = {{.rank = 4, .local_rank = 0}, {.rank = 5, .local_rank = 1}};
  }
  ~Job() { finish(0); }

  void finish(int code) {
    if (!thread.joinable()) return;
    boost::asio::post(loop, [this, code] {
      server.end(code);
      loop.stop();
    });
    thread.join();
  }
  void post(std::function<void()> work) { boost::asio::post(loop, std::move(work)); }
  void write(int local_rank, const std::string& text) {
    post([this, local_rank, text] {
      rings[local_rank].append(StreamName::out, text);
      server.output_grew();
    });
  }
  ControlClient ask(const json& request) {
    FoundJobs result = find_jobs({folder});
    REQUIRE(result.running.size() == 1);
    ControlClient client = std::move(result.running[0].client);
    client.send(request);
    return client;
  }

  fs::path folder;
  JobView view = {.id = "job-1"};
  std::map<int, OutputRing> rings = {};
  int stops = 0;
  bool is_immediate = false;
  std::function<void()> on_output = [] {};
  std::function<void(const json&)> nodes_answer = {};
  boost::asio::io_context loop = {};
  ControlServer server{loop,
                       {folder},
                       "job-1",
                       {.view = [this] { return view; },
                        .stop =
                            [this](bool now) {
                              ++stops;
                              is_immediate = now;
                            },
                        .output =
                            [this](int rank) {
                              on_output();
                              return rings.contains(rank) ? &rings[rank] : nullptr;
                            },
                        .history =
                            [](int rank) {
                              return rank == 4 ? std::optional(StepHistory{.seconds = {{.steps = 7}}})
                                               : std::nullopt;
                            },
                        .write_stacks =
                            [](Descriptor connection) {
                              if (::write(connection.get(), "stacks\n", 7) != 7)
                                throw std::runtime_error("write");
                            },
                        .nodes = [this](auto answer) { nodes_answer = std::move(answer); }}};
  std::thread thread{[this] { loop.run(); }};
};

Descriptor connect_to(const fs::path& socket) {
  Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return connection;
}

}  // namespace

TEST_CASE("control_server: the socket is for its user alone, and removed with the job", "[control]") {
  const TemporaryFolder base;
  const fs::path socket = base.path() / "acc" / "job-1.sock";
  {
    const Job job(base.path() / "acc");
    CHECK(job.server.problem().empty());
    CHECK(fs::status(socket).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    CHECK(std::distance(fs::directory_iterator(socket.parent_path()), {}) == 1);
  }
  CHECK_FALSE(fs::exists(socket));
}

TEST_CASE("control_server: a socket that vanishes with its folder is made anew", "[control]") {
  const TemporaryFolder base;
  const fs::path first = base.path() / "session" / "acc";
  const fs::path second = base.path() / "acc";
  fs::create_directory(first.parent_path());
  boost::asio::io_context loop;
  const auto view = [] { return JobView{.id = "job-1"}; };
  ControlServer server(loop, {first, second}, "job-1", {.view = view});
  server.restore();
  CHECK(fs::exists(first / "job-1.sock"));
  CHECK_FALSE(fs::exists(second));
  fs::remove_all(first.parent_path());
  server.restore();
  REQUIRE(fs::exists(second / "job-1.sock"));
  std::thread thread([&] { loop.run(); });
  CHECK(find_jobs({first, second}).running.size() == 1);
  fs::remove_all(second);
  boost::asio::post(loop, [&] {
    server.restore();
    server.end(0);
    loop.stop();
  });
  thread.join();
  CHECK(fs::is_empty(second));
}

TEST_CASE("control_server: a job of another pid namespace is told apart", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  job.post([&] { job.view.agent = ::getpid(); });
  CHECK(find_jobs({base.path() / "acc"}).running.size() == 1);
  job.post([&] { job.view.agent = ::getpid() + 1; });
  const FoundJobs result = find_jobs({base.path() / "acc"});
  CHECK(result.running.empty());
  CHECK(result.warnings ==
        std::vector<std::string>{"job job-1 runs in another container, whose processes are not seen here"});
}

TEST_CASE("control_server: a rank that goes on writing has an end for who does not follow it", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  job.write(0, "first");
  // Each message is answered by more output.
  job.post([&] { job.on_output = [&] { job.rings[0].append(StreamName::out, "more"); }; });
  ControlClient client = job.ask({{"request", "logs"}});
  const auto piece = client.read_message();
  REQUIRE(piece);
  CHECK(client.read_bytes(piece->at("bytes")).starts_with("first"));
  int messages = 0;
  for (auto next = client.read_message(); next && !next->contains("end"); next = client.read_message()) {
    client.read_bytes(next->at("bytes"));
    REQUIRE(++messages < 10);
  }
}

TEST_CASE("control_server: a file that has the socket's name is replaced", "[control]") {
  const TemporaryFolder base;
  const fs::path folder = base.path() / "acc";
  boost::asio::io_context loop;
  ControlServer server(loop, {folder}, "job-1", {.view = [] { return JobView{.id = "job-1"}; }});
  fs::remove_all(folder);
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  base.write("acc/job-1.sock", "");
  server.restore();
  CHECK(server.problem().empty());
  CHECK(fs::is_socket(folder / "job-1.sock"));
  connect_to(folder / "job-1.sock");
}

TEST_CASE("control_server: a socket of a living job that has the name is left to it", "[control]") {
  const TemporaryFolder base;
  const fs::path first = base.path() / "first";
  const fs::path second = base.path() / "second";
  const fs::path socket = first / "job-1.sock";
  boost::asio::io_context loop;
  std::optional<ControlServer> other;
  {
    std::optional<ControlServer> server;
    SECTION("and another folder is used") {
      server.emplace(loop, std::vector{first, second}, "job-1", JobHandlers());
      other.emplace(loop, std::vector{first}, "job-1", JobHandlers());
      server->restore();
      CHECK(server->problem().empty());
      connect_to(second / "job-1.sock");
    }
    SECTION("or none, until it has ended") {
      server.emplace(loop, std::vector{first}, "job-1", JobHandlers());
      other.emplace(loop, std::vector{first}, "job-1", JobHandlers());
      server->restore();
      CHECK(server->problem() == first.string() + ": another job of this name is there");
      connect_to(socket);
      other.reset();
      server->restore();
      CHECK(server->problem().empty());
      connect_to(socket);
      server.reset();
      other.emplace(loop, std::vector{first}, "job-1", JobHandlers());
    }
    SECTION("also at the end") {
      server.emplace(loop, std::vector{first}, "job-1", JobHandlers());
      other.emplace(loop, std::vector{first}, "job-1", JobHandlers());
    }
  }
  connect_to(socket);
}

TEST_CASE("control_server: a folder that cannot be used is a problem, and the next one is used",
          "[control]") {
  const TemporaryFolder base;
  boost::asio::io_context loop;
  base.write("file", "");
  const ControlServer deaf_server(loop, {base.path() / "file"}, "job-1", {});
  CHECK(deaf_server.problem().find("file: cannot be used for job sockets") != std::string::npos);
  std::string warning;
  {
    const log::ConsoleRedirect console([&](std::string_view lines) { warning += lines; });
    deaf_server.report_problem();
  }
  CHECK(warning.find("acc ps and acc stop cannot find this job: " + deaf_server.problem()) !=
        std::string::npos);
  const ControlServer server(loop, {base.path() / "file", base.path() / "acc"}, "job-1", {});
  CHECK(server.problem().empty());
  CHECK(fs::exists(base.path() / "acc" / "job-1.sock"));
  const ControlServer homeless_server(loop, {base.path() / "missing" / "acc"}, "job-1", {});
  CHECK(homeless_server.problem() == "no folder for its socket can be made");
}

TEST_CASE("control_server: a long path works", "[control]") {
  const TemporaryFolder base;
  const fs::path deep = base.path() / std::string(120, 'd');
  fs::create_directory(deep);
  Job job(deep / "acc");
  CHECK(job.ask({{"request", "view"}}).read_message()->at("job") == "job-1");
}

TEST_CASE("control_server: stop is forwarded, and its sender receives the end", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  ControlClient client = job.ask({{"request", "stop"}, {"now", true}});
  CHECK(client.read_message() == json::object());
  job.finish(143);
  CHECK(job.stops == 1);
  CHECK(job.is_immediate);
  CHECK(client.read_message() == json{{"ended", 143}});
  CHECK_FALSE(client.read_message());
}

TEST_CASE("control_server: what other nodes say comes when they have said it, and not after the end",
          "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  ControlClient client = job.ask({{"request", "nodes"}});
  client.send({{"request", "view"}});
  CHECK(job.ask({{"request", "view"}}).read_message()->at("job") == "job-1");  // meanwhile it answers others
  job.post([&] { job.nodes_answer({{"nodes", 2}}); });
  CHECK(client.read_message() == json{{"nodes", 2}});
  CHECK(client.read_message()->at("job") == "job-1");
  client.send({{"request", "nodes"}});
  CHECK(job.ask({{"request", "view"}}).read_message());
  job.finish(0);
  job.nodes_answer({{"nodes", 3}});
  CHECK_FALSE(client.read_message());
}

TEST_CASE("control_server: logs sends what is kept, and then the end", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  job.write(0, "zero");
  job.write(1, "one\nmore");
  ControlClient client = job.ask({{"request", "logs"}, {"ranks", {5}}});
  const auto piece = client.read_message();
  REQUIRE(piece);
  CHECK(*piece == json{{"rank", 5}, {"stream", "stdout"}, {"skipped", 0}, {"bytes", 8}});
  CHECK(client.read_bytes(8) == "one\nmore");
  CHECK(client.read_message() == json{{"end", true}});
}

TEST_CASE("control_server: a follower receives new output, a restart and the end", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  ControlClient client = job.ask({{"request", "logs"}, {"ranks", {4}}, {"follow", true}});
  CHECK(client.read_message() == json{{"started", to_json(job.view.ranks[0])}});
  job.write(0, "first");
  CHECK(client.read_message()->at("bytes") == 5);
  CHECK(client.read_bytes(5) == "first");
  boost::asio::post(job.loop, [&] {
    job.rings[0] = OutputRing{};
    job.server.worker_started(job.view.ranks[0]);
    job.server.worker_started(job.view.ranks[1]);
  });
  job.write(1, "not asked for");
  job.write(0, "second attempt");
  CHECK(client.read_message() == json{{"started", to_json(job.view.ranks[0])}});
  CHECK(client.read_message()->at("skipped") == 0);
  CHECK(client.read_bytes(14) == "second attempt");
  job.write(0, "last");
  job.finish(7);
  CHECK(client.read_message()->at("bytes") == 4);
  CHECK(client.read_bytes(4) == "last");
  CHECK(client.read_message() == json{{"ended", 7}});
}

TEST_CASE("control_server: a follower that is behind receives what is kept, and the end", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  ControlClient client = job.ask({{"request", "logs"}, {"ranks", {4}}, {"follow", true}});
  CHECK(client.read_message()->contains("started"));
  // More than the connection holds.
  for (int i = 0; i < 8000; ++i) job.write(0, std::string(4096, 'x'));
  job.write(0, "last\n");
  job.finish(7);
  std::string output;
  std::optional<json> message = client.read_message();
  std::uint64_t skipped = 0;
  for (; message && message->contains("bytes"); message = client.read_message()) {
    output += client.read_bytes(message->at("bytes"));
    skipped += message->at("skipped").get<std::uint64_t>();
  }
  CHECK(message == json{{"ended", 7}});
  CHECK(output.ends_with("xlast\n"));
  CHECK(skipped > 0);
}

TEST_CASE("control_server: stacks are written to the connection by another process", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  std::string text;
  job.ask({{"request", "stacks"}}).read_to_end([&](std::string_view bytes) { text += bytes; });
  CHECK(text == "stacks\n");
}

TEST_CASE("control_server: tells the past of a rank", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  RunningJob running = {.client = job.ask({{"request", "history"}, {"rank", 4}})};
  CHECK(step_history_from_json(running.client.read_message()->at("history")).seconds.at(0).steps == 7);
  CHECK(ask_history(running, 4)->seconds.at(0).steps == 7);
  CHECK_FALSE(ask_history(running, 5));
  CHECK_THROWS_WITH(job.ask({{"request", "history"}}).read_message(), Catch::Contains("invalid request"));
}

TEST_CASE("control_server: who does not read the answers is not asked for more requests", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  job.view.command = {std::string(100'000, 'x')};
  const Descriptor client = connect_to(base.path() / "acc" / "job-1.sock");
  const std::string request = json{{"request", "view"}}.dump() + "\n";
  // Only the socket's buffers hold what is not read: the agent's memory would hold all.
  constexpr int kRequests = 100'000;
  int sent = 0;
  for (bool is_taken = true; is_taken && sent < kRequests; ++sent) {
    is_taken = ::send(client.get(), request.data(), request.size(), MSG_DONTWAIT) > 0;
    // An answer to another client comes after all that was read from this one.
    if (sent % 1000 == 0) CHECK(job.ask({{"request", "view"}}).read_message());
  }
  CHECK(sent < kRequests);
}

TEST_CASE("control_server: idle clients are closed for new ones, waiting clients are not", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  ControlClient follower = job.ask({{"request", "logs"}, {"ranks", {4}}, {"follow", true}});
  std::vector<Descriptor> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect_to(base.path() / "acc" / "job-1.sock"));
  CHECK(job.ask({{"request", "view"}}).read_message()->at("job") == "job-1");
  CHECK(follower.read_message()->contains("started"));
  job.write(0, "still heard");
  CHECK(follower.read_message()->at("bytes") == 11);
}

TEST_CASE("control_server: followers leave room for those who look at the job", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  const json follow = {{"request", "logs"}, {"ranks", {4}}, {"follow", true}};
  std::vector<ControlClient> followers;
  for (int i = 0; i < 32; ++i) {
    followers.push_back(job.ask(follow));
    CHECK(followers.back().read_message()->contains("started"));
  }
  for (int i = 0; i < 40; ++i)
    CHECK(error_of([&] { job.ask(follow).read_message(); }) == "32 others follow its output already");
  CHECK(job.ask({{"request", "view"}}).read_message()->at("job") == "job-1");
  job.write(0, "heard");
  for (ControlClient& follower : followers) CHECK(follower.read_message()->at("bytes") == 5);
  followers.pop_back();
  // Its connection is noticed to be closed before a request that comes later is read.
  CHECK(job.ask(follow).read_message()->contains("started"));
}

TEST_CASE("control_server: without a free descriptor it waits, and then continues", "[control]") {
  const TemporaryFolder base;
  boost::asio::io_context loop{1};
  int stops = 0;
  const ControlServer server(loop, {base.path() / "acc"}, "job-1", {.stop = [&](bool) { ++stops; }});
  loop.poll();
  const Descriptor client = connect_to(base.path() / "acc" / "job-1.sock");
  const std::string stop = json{{"request", "stop"}, {"now", true}}.dump() + "\n";
  REQUIRE(::send(client.get(), stop.data(), stop.size(), 0) == static_cast<ssize_t>(stop.size()));
  std::size_t busy = 0;
  {
    const NoMoreDescriptors limit;
    // One try, then the pause. A busy loop would have a ready handler each time.
    loop.run_one();
    for (int i = 0; i < 1000; ++i) busy += loop.poll_one();
  }
  CHECK(busy < 100);
  CHECK(stops == 0);
  while (stops == 0) loop.run_one();
  CHECK(stops == 1);
}

TEST_CASE("control_server: invalid requests close only their own connection", "[control]") {
  const TemporaryFolder base;
  Job job(base.path() / "acc");
  CHECK_THROWS(job.ask(json::array()).read_message());
  CHECK_THROWS(job.ask({{"request", "fly"}}).read_message());
  CHECK_THROWS(job.ask({{"request", 5}}).read_message());
  CHECK_THROWS(job.ask({{"request", "logs"}, {"ranks", "all"}}).read_message());
  CHECK_FALSE(job.ask({{"request", std::string(200'000, 'x')}}).read_message());
  CHECK(job.ask({{"request", "view"}}).read_message()->at("job") == "job-1");
}

}  // namespace control_server_test
