// SPDX-License-Identifier: Apache-2.0
// What clients send to the socket of a running job: each line is answered by a line of JSON, or by output
// with its length, and whatever it is, the job goes on; also if meanwhile a worker starts, output comes, or
// the job ends.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "acc/control/control_server.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::Descriptor;
namespace control = acc::launcher;

control::JobView view_of_job() {
  control::JobView view = {.id = "train-1", .pid = 1, .agent = 2, .run_id = "r", .world_size = 2};
  view.ranks = {{.rank = 0, .local_rank = 0, .pid = 3}, {.rank = 1, .local_rank = 1, .pid = 4}};
  return view;
}

/// The job whose socket it is.
class Job {
 public:
  explicit Job(const std::string& name, bool has_much_output = false) : folder_(folder_of(name)) {
    ring_.append(control::StreamName::out, "hello\n");
    ring_.append(control::StreamName::err, "world");
    if (has_much_output) ring_.append(control::StreamName::out, std::string(kMoreThanIsKept, 'x'));
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    server_.emplace(
        loop_, std::vector{folder_}, "train-1",
        control::JobHandlers{.view = view_of_job,
                             .stop = [](bool) {},
                             .output = [this](int rank) { return rank == 0 ? &ring_ : nullptr; },
                             .history = [](int rank) -> std::optional<control::StepHistory> {
                               if (rank != 0) return std::nullopt;
                               return control::StepHistory();
                             },
                             .write_stacks = [](Descriptor) {},
                             .nodes = [](const auto& answer) { answer(nlohmann::json::object()); }});
    fuzz::require(server_->problem().empty(), "the job has a socket", server_->problem());
  }
  ~Job() {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  Descriptor connect() {
    Descriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    (folder_ / "train-1.sock").string().copy(address.sun_path, sizeof address.sun_path - 1);
    fuzz::require(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
                  "the job accepts a client");
    poll();
    return client;
  }

  /// With `ends` the job does so at last, and the client reads nothing before.
  std::string answers_to(std::string_view requests, bool ends = false) {
    const Descriptor client = connect();
    std::string answers;
    while (!requests.empty()) {
      const ssize_t sent = ::send(client.get(), requests.data(), requests.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      requests.remove_prefix(static_cast<std::size_t>(sent));
      if (ends) {
        poll();
      } else {
        serve(client, answers);
      }
    }
    ring_.append(control::StreamName::err, "more\n");
    server_->worker_started(view_of_job().ranks.front());
    server_->output_grew();
    serve(client, answers);
    if (ends) server_->end(1);
    ::shutdown(client.get(), SHUT_WR);
    serve(client, answers);
    return answers;
  }

 private:
  static constexpr std::size_t kMoreThanIsKept = std::size_t{40} << 10U;

  void poll() {
    loop_.restart();
    while (loop_.poll() > 0) {
    }
  }

  // Until nothing more is to be done.
  void serve(const Descriptor& client, std::string& answers) {
    char buffer[16384];
    ssize_t size = 0;
    do {
      poll();
      size = ::recv(client.get(), buffer, sizeof buffer, 0);
      if (size > 0) answers.append(buffer, static_cast<std::size_t>(size));
    } while (size > 0);
  }

  static std::filesystem::path folder_of(const std::string& name) {
    return "/dev/shm/acc-fuzz-" + name + std::to_string(::getpid());
  }

  std::filesystem::path folder_;
  boost::asio::io_context loop_ = {};
  control::OutputRing ring_ = {};
  std::optional<control::ControlServer> server_ = {};
};

void require_messages(std::string_view answers) {
  while (!answers.empty()) {
    const std::size_t end = answers.find('\n');
    const auto message = nlohmann::json::parse(answers.substr(0, end), nullptr, false);
    fuzz::require(end != std::string_view::npos && message.is_object(), "an answer is a line of JSON",
                  answers);
    answers.remove_prefix(end + 1);
    if (message.contains("bytes"))
      answers.remove_prefix(std::min(message["bytes"].get<std::size_t>(), answers.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Job job("goes-on");
  // More than it keeps open.
  static std::vector<Descriptor> idle_clients;
  while (idle_clients.size() < 64) idle_clients.push_back(job.connect());
  require_messages(job.answers_to(fuzz::text_of(data, size)));
  require_messages(Job("ends", true).answers_to(fuzz::text_of(data, size), true));
  require_messages(job.answers_to("{\"request\": \"view\"}\n"));
  return 0;
}
