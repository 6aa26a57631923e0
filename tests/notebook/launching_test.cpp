// SPDX-License-Identifier: Apache-2.0
// What notebook_launcher promises, with real workers.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "acc/accelerator.hpp"
#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/notebook.hpp"
#include "acc/parallel.hpp"
#include "acc/process.hpp"
#include "acc/trainer.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"

namespace launching_test {

using namespace acc;
using namespace acc::test;

namespace {

// Only a test that fails waits so long.
constexpr int kPatienceMs = 60'000;

int rank_of(const PartialState& state) {
  return state.process_index();
}

int own_rank() {
  return std::stoi(Environment::of_process().get("RANK"));
}

// The text of the Error of a job in which rank 1 fails while rank 0 waits for it.
std::string error_of_rank_1(const std::function<void()>& fail) {
  return error_of([&] {
    notebook_launcher(
        [&] {
          const PartialState state;
          if (rank_of(state) == 1) fail();
          state.wait_for_everyone();
        },
        {.num_processes = 2});
  });
}

std::vector<int> ranks_of_job(int workers) {
  return debug_launcher(
      [] {
        const PartialState state;
        state.wait_for_everyone();
        return rank_of(state);
      },
      workers);
}

Descriptor watch(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// notebook_caller in a process of its own.
class Caller {
 public:
  explicit Caller(std::vector<std::string> arguments) {
    int out[2] = {-1, -1};
    int in[2] = {-1, -1};
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    out_ = Descriptor(out[0]);
    in_ = Descriptor(in[1]);
    arguments.insert(arguments.begin(), ACC_NOTEBOOK_CALLER);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(in[0], STDIN_FILENO);
      ::signal(SIGINT, SIG_DFL);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(in[0]);
  }
  ~Caller() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void signal(int signal) const { ::kill(pid_, signal); }
  void answer() const { REQUIRE(::write(in_.get(), "\n", 1) == 1); }

  // The processes of the next `count` lines `ready PID`.
  std::vector<pid_t> ready(int count) {
    std::vector<pid_t> workers;
    while (static_cast<int>(workers.size()) < count) {
      const std::string line = next_line();
      if (line.starts_with("ready ")) workers.push_back(std::stoi(line.substr(6)));
    }
    return workers;
  }

  std::string next_line() {
    std::size_t end = text_.find('\n');
    for (; end == std::string::npos; end = text_.find('\n')) REQUIRE(read_more());
    const std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

  // Everything that is still to come, at the end of the caller.
  std::string rest() {
    while (read_more()) {
    }
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    CHECK(status == 0);
    return text_;
  }

 private:
  bool read_more() {
    pollfd event = {out_.get(), POLLIN, 0};
    REQUIRE(::poll(&event, 1, kPatienceMs) == 1);
    char buffer[1 << 16];
    const ssize_t n = ::read(out_.get(), buffer, sizeof buffer);
    if (n > 0) text_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  pid_t pid_ = 0;
  Descriptor out_;
  Descriptor in_;
  std::string text_ = {};
};

// Whether all of them have ended by then.
bool end_within(const std::vector<Descriptor>& processes, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (const Descriptor& process : processes) {
    if (!process) continue;  // it has ended and was reaped
    const auto remaining =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd event = {process.get(), POLLIN, 0};
    if (::poll(&event, 1, std::max(0, static_cast<int>(remaining))) != 1) return false;
  }
  return true;
}

std::vector<Descriptor> watch_all(const std::vector<pid_t>& processes) {
  std::vector<Descriptor> watched;
  for (const pid_t pid : processes) watched.push_back(watch(pid));
  return watched;
}

pid_t parent_of(pid_t pid) {
  std::istringstream stat(read_file("/proc/" + std::to_string(pid) + "/stat"));
  std::string number;
  std::string name;
  std::string state;
  pid_t parent = 0;
  stat >> number >> name >> state >> parent;
  return parent;
}

// Each process has inputs of its own.
at::Tensor train_with_ddp(double learning_rate, int steps) {
  const PartialState state;
  set_seed(0);
  torch::nn::Linear net(2, 1);
  Ddp ddp(net.ptr(), state.process_group());
  torch::optim::SGD optimizer(net->parameters(), learning_rate);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor inputs = at::full({4, 2}, 1.0 + rank_of(state));
    (ddp(inputs) - 3).square().mean().backward();
    optimizer.step();
  }
  return net->weight;
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// What LibTorch computes on all threads that it may use.
void compute_in_parallel() {
  at::ones({std::int64_t{1} << 22U}).add_(1);
}

}  // namespace

TEST_CASE("launching: each worker's result comes back, by rank", "[launching]") {
  const auto results = notebook_launcher(
      [](double factor, const std::string& word) {
        return word + std::to_string(static_cast<int>(factor * own_rank()));
      },
      std::tuple{10.0, std::string("r")}, {.num_processes = 3});
  CHECK(results == std::vector<std::string>{"r0", "r10", "r20"});
  const auto tensors = debug_launcher([] { return at::full({2}, own_rank()); });
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[1].equal(at::full({2}, 1)));
}

TEST_CASE("launching: a large result comes back whole", "[launching]") {
  constexpr std::int64_t kNumbers = std::int64_t{16} << 20U;  // 128 MiB each
  const auto results = debug_launcher([] { return at::arange(kNumbers) + own_rank(); });
  for (int rank = 0; rank < 2; ++rank)
    CHECK(results[static_cast<std::size_t>(rank)].equal(at::arange(kNumbers) + rank));
}

TEST_CASE("launching: a function without a result runs in each worker, whose changes stay there",
          "[launching]") {
  int changed = 0;
  const TemporaryFolder folder;
  notebook_launcher(
      [&] {
        ++changed;
        folder.write(std::to_string(own_rank()), std::to_string(changed));
      },
      {.num_processes = 2});
  CHECK(changed == 0);
  CHECK(folder.read("0") == "1");
  CHECK(folder.read("1") == "1");
}

TEST_CASE("launching: the caller reads on what it trains", "[launching]") {
  CHECK(printed_to(stdout, [] { notebook_launcher([] {}, {.num_processes = 2, .cpu = true}); }) ==
        "Launching training on 2 CPUs.\n");
  CHECK(printed_to(stdout, [] { notebook_launcher([] {}, {.num_processes = 1, .cpu = true}); }) ==
        "Launching training on CPU.\n");
  CHECK(printed_to(stdout, [] { debug_launcher([] {}); }).empty());
}

TEST_CASE("launching: a single worker is a process of its own", "[launching]") {
  const pid_t caller = ::getpid();
  const auto pids = notebook_launcher([] { return ::getpid(); }, {.num_processes = 1});
  REQUIRE(pids.size() == 1);
  CHECK(pids.front() != caller);
}

TEST_CASE("launching: jobs follow each other in one program, also of four workers", "[launching]") {
  CHECK(ranks_of_job(2) == std::vector{0, 1});
  CHECK(ranks_of_job(4) == std::vector{0, 1, 2, 3});
  CHECK(error_of_rank_1([] { throw std::runtime_error("once"); }) == "rank 1: std::runtime_error: once");
  CHECK(ranks_of_job(2) == std::vector{0, 1});
}

TEST_CASE("launching: an exception reaches the caller with its rank and own text", "[launching]") {
  CHECK(error_of_rank_1([] { throw std::out_of_range("seven"); }) == "rank 1: std::out_of_range: seven");
  CHECK(error_of_rank_1([] { TORCH_CHECK(false, "shapes differ"); }) == "rank 1: c10::Error: shapes differ");
  CHECK(error_of_rank_1([] {
          throw Error({.what = "is empty", .where = "data/train", .hint = "fill it"});
        }) == "rank 1: data/train: is empty (fill it)");
  CHECK(error_of_rank_1([] { throw 7; }) == "rank 1: an exception that is not a std::exception");
}

TEST_CASE("launching: a worker that ends without an exception is told by how it ended", "[launching]") {
  CHECK(error_of_rank_1([] { std::exit(3); }) == "rank 1: failed with exit code 3");
  CHECK(error_of_rank_1([] { ::raise(SIGSEGV); }).starts_with("rank 1: was ended by signal 11 (SIGSEGV"));
  CHECK(error_of([] {
          notebook_launcher(
              [] {
                if (own_rank() == 1) std::exit(0);
              },
              {.num_processes = 2});
        }) == "local rank 1: ended before its function returned, with exit code 0");
}

TEST_CASE("launching: a process of a worker does not outlive the job", "[launching]") {
  const auto pids = debug_launcher([] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      for (;;) ::pause();
    }
    return child;
  });
  CHECK(end_within(watch_all(pids), std::chrono::milliseconds(0)));
}

TEST_CASE("launching: workers have the caller's descriptors and none of the launcher's", "[launching]") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const auto opened = [] {
    std::vector<int> descriptors;
    for (int fd = 0; fd < 256; ++fd)
      if (::fcntl(fd, F_GETFD) >= 0) descriptors.push_back(fd);
    return descriptors;
  };
  const std::size_t num_opened = opened().size();
  const auto of_workers = debug_launcher([&] {
    REQUIRE(::write(ends[1], "x", 1) == 1);
    return opened().size();
  });
  char from_workers[2] = {};
  CHECK(::read(ends[0], from_workers, 2) == 2);
  // Beside the caller's: a text for each of two workers, the outcome, the caller's end and its interrupts.
  for (const std::size_t count : of_workers) CHECK(count == num_opened + 5);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("launching: a caller whose standard streams are closed gets what its workers return",
          "[launching]") {
  CHECK(in_child([] {
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) ::close(stream);
          const auto ranks = debug_launcher([] { return own_rank(); });
          return ranks == std::vector{0, 1} ? 0 : 1;
        }) == 0);
}

TEST_CASE("launching: after parallel work in the caller, workers have threads of their own", "[launching]") {
#if defined(__SANITIZE_THREAD__)
  SUCCEED("ThreadSanitizer starts no thread in the child of a process with threads");
  return;
#endif
  at::set_num_threads(2);
  const std::size_t before = threads_of_process();
  compute_in_parallel();
  REQUIRE(threads_of_process() == before + 1);
  const auto of_workers = notebook_launcher(
      [] {
        const std::size_t threads = threads_of_process();
        compute_in_parallel();
        return threads_of_process() - threads;
      },
      {.num_processes = 2, .num_cpu_threads_per_process = 2});
  CHECK(of_workers == std::vector<std::size_t>{1, 1});
  at::set_num_threads(1);
}

TEST_CASE("launching: loaders with worker threads run", "[launching]") {
  const auto sums = debug_launcher([] {
    Accelerator accelerator;
    auto loader =
        accelerator.prepare(DataLoader(TensorDataset(at::arange(64)), {.batch_size = 4, .num_workers = 2}));
    std::int64_t sum = 0;
    for (auto& [batch] : loader) sum += accelerator.reduce(batch.sum()).item<std::int64_t>();
    return sum;
  });
  CHECK(sums == std::vector<std::int64_t>{64 * 63 / 2, 64 * 63 / 2});
}

TEST_CASE("launching: mixed_precision is that of the worker's Accelerator", "[launching]") {
  const auto types = notebook_launcher(
      [] {
        const Accelerator accelerator;
        const auto autocast = accelerator.autocast();
        const at::Tensor product = at::matmul(at::ones({2, 2}), at::ones({2, 2}));
        return std::string(c10::toString(product.scalar_type()));
      },
      {.num_processes = 2, .mixed_precision = "bf16", .cpu = true});
  CHECK(types == std::vector<std::string>{"BFloat16", "BFloat16"});
}

TEST_CASE("launching: failed workers are started again while restarts are left", "[launching]") {
  const auto restarted = [] {
    const PartialState state;
    if (state.worker().restart_count < 2 && rank_of(state) == 1) throw std::runtime_error("not yet");
    state.wait_for_everyone();
    return state.worker().restart_count;
  };
  CHECK(notebook_launcher(restarted, {.num_processes = 2, .max_restarts = 2}) == std::vector{2, 2});
  CHECK(error_of([&] { notebook_launcher(restarted, {.num_processes = 2, .max_restarts = 1}); }) ==
        "rank 1: std::runtime_error: not yet");
}

TEST_CASE("launching: what a worker returned before a restart is not its result", "[launching]") {
  int pids[2] = {};
  REQUIRE(::pipe(pids) == 0);
  const Descriptor read_end(pids[0]);
  const Descriptor write_end(pids[1]);
  // Rank 0 returns once, and ends without a result when it is started again.
  const auto restarted = [&] {
    const bool again = Environment::of_process().get("TORCHELASTIC_RESTART_COUNT") == "1";
    if (own_rank() == 0) {
      if (again) ::_exit(0);
      const pid_t own = ::getpid();
      REQUIRE(::write(write_end.get(), &own, sizeof own) == sizeof own);
    } else if (!again) {
      pid_t other = 0;
      REQUIRE(::read(read_end.get(), &other, sizeof other) == sizeof other);
      const Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, other, 0)));
      pollfd event = {ended.get(), POLLIN, 0};
      if (ended) ::poll(&event, 1, kPatienceMs);
      throw std::runtime_error("again");
    }
    return own_rank();
  };
  CHECK(error_of([&] { notebook_launcher(restarted, {.num_processes = 2, .max_restarts = 1}); }) ==
        "local rank 0: ended before its function returned, with exit code 0");
}

TEST_CASE("launching: log_dir keeps each worker's output, and error file", "[launching]") {
  const TemporaryFolder folder;
  const std::string error = error_of([&] {
    notebook_launcher(
        [] {
          std::printf("from rank %d\n", own_rank());
          if (own_rank() == 1) throw std::runtime_error("lost");
          for (;;) ::pause();
        },
        {.num_processes = 2, .log_dir = folder.path().string(), .redirects = "3"});
  });
  std::filesystem::path logs;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    logs = entry.path() / "attempt_0";
  CHECK(error == "rank 1: std::runtime_error: lost (its files are in " + (logs / "1").string() + ")");
  CHECK(read_file(logs / "1" / "stdout.log") == "from rank 1\n");
  CHECK(read_file(logs / "1" / "error.json").find("lost") != std::string::npos);
}

TEST_CASE("launching: a process that has joined a job is refused", "[launching]") {
  const Accelerator accelerator;
  CHECK(error_of([] { ranks_of_job(2); }).starts_with("notebook_launcher: this process has an Accelerator"));
}

TEST_CASE("launching: a worker that launches workers is refused", "[launching]") {
  CHECK(error_of([] {
          debug_launcher([] { debug_launcher([] {}); }, 1);
        }).starts_with("rank 0: notebook_launcher: this process is a worker"));
}

TEST_CASE("launching: ACCELERATE_DEBUG_MODE finds out first whether workers can join a job", "[launching]") {
  CHECK(in_child([] {
          ::setenv("ACCELERATE_DEBUG_MODE", "true", 1);
          const auto ranks = notebook_launcher([] { return own_rank(); }, {.num_processes = 2, .cpu = true});
          return ranks == std::vector{0, 1} ? 0 : 10;
        }) == 0);
  CHECK(in_child([] {
          ::setenv("ACCELERATE_DEBUG_MODE", "true", 1);
          ::setenv("GLOO_SOCKET_IFNAME", "nowhere0", 1);
          const std::string error =
              error_of([] { notebook_launcher([] {}, {.num_processes = 2, .cpu = true}); });
          std::puts(error.c_str());
          constexpr std::string_view kBegin =
              "notebook_launcher with ACCELERATE_DEBUG_MODE: workers that only join the job fail: rank ";
          return error.starts_with(kBegin) && error.find("nowhere0") != std::string::npos ? 0 : 10;
        }) == 0);
}

TEST_CASE("launching: a training by hand with DDP", "[launching]") {
  const auto weights = notebook_launcher(train_with_ddp, std::tuple{0.05, 40}, {.num_processes = 2});
  REQUIRE(weights.size() == 2);
  CHECK(weights[0].equal(weights[1]));
}

TEST_CASE("launching: a training with an Accelerator ends with equal weights", "[launching]") {
  const Data data = load_data();
  const auto weights = notebook_launcher(
      [&] {
        Accelerator accelerator;
        set_seed(1);
        Net net;
        torch::optim::Adam adam(net->parameters(), 1e-3);
        auto [model, optimizer, train] = accelerator.prepare(
            net, std::move(adam), DataLoader(data.train, {.batch_size = 32, .shuffle = true}));
        int steps = 0;
        for (auto& [images, labels] : train) {
          if (++steps > 5) break;
          optimizer.zero_grad();
          accelerator.backward(at::nll_loss(model(images), labels));
          optimizer.step();
        }
        return net->fc2->weight;
      },
      {.num_processes = 2});
  REQUIRE(weights.size() == 2);
  CHECK(weights[0].equal(weights[1]));
}

TEST_CASE("launching: a training with a Trainer", "[launching]") {
  const Data data = load_data();
  const TemporaryFolder folder;
  const auto losses = notebook_launcher(
      [&] {
        TrainingArguments arguments;
        arguments.output_dir = folder.path().string();
        arguments.max_steps = 20;
        arguments.per_device_train_batch_size = 32;
        arguments.learning_rate = 1e-3;
        arguments.save_strategy = SaveStrategy::no;
        Net net;
        Trainer trainer(net, arguments, data.train, data.test);
        return trainer.train().training_loss;
      },
      {.num_processes = 2});
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] < 2.3);  // that of a network that guesses
}

TEST_CASE("launching: an interrupt ends all workers, and the caller goes on", "[launching]") {
  Caller caller({"interrupted"});
  const auto workers = watch_all(caller.ready(2));
  caller.signal(SIGINT);
  CHECK(caller.rest() ==
        "error: notebook_launcher: was interrupted; all workers have ended\nthen rank 0\nthen rank 1\n");
  CHECK(end_within(workers, std::chrono::milliseconds(0)));
}

TEST_CASE("launching: a worker that is deaf to signals is killed after the grace", "[launching]") {
  Caller caller({"deaf"});
  const auto workers = watch_all(caller.ready(2));
  caller.signal(SIGINT);
  CHECK(caller.rest() == "error: notebook_launcher: was interrupted; all workers have ended\n");
  CHECK(end_within(workers, std::chrono::milliseconds(0)));
}

TEST_CASE("launching: when the caller is killed, nobody is left within a second", "[launching]") {
  Caller caller({"waits"});
  const std::vector<pid_t> workers = caller.ready(2);
  std::vector<Descriptor> processes = watch_all(workers);
  processes.push_back(watch(parent_of(workers.front())));
  caller.signal(SIGKILL);
  CHECK(end_within(processes, std::chrono::seconds(1)));
}

TEST_CASE("launching: when the launcher is killed, the workers end and the caller says so", "[launching]") {
  Caller caller({"waits"});
  const std::vector<pid_t> pids = caller.ready(2);
  const auto workers = watch_all(pids);
  ::kill(parent_of(pids.front()), SIGKILL);
  CHECK(end_within(workers, std::chrono::seconds(1)));
  CHECK(caller.rest().starts_with("error: notebook_launcher: the process that runs the workers was killed"));
}

TEST_CASE("launching: output is seen when it is written", "[launching]") {
  Caller caller({"live"});
  caller.ready(1);
  caller.answer();
  CHECK(caller.rest().empty());
}

TEST_CASE("launching: lines of two workers are whole, and in the order of each", "[launching]") {
  constexpr int kLines = 5000;
  Caller caller({"lines", std::to_string(kLines)});
  std::istringstream text(caller.rest());
  std::map<std::string, int> next;
  int torn = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("Launching")) continue;
    const std::string rank = line.substr(0, 6);
    const std::string expected =
        rank + " line " + std::to_string(next[rank]++) + " of " + std::to_string(kLines);
    if (line != expected) ++torn;
  }
  CHECK(torn == 0);
  CHECK(next == std::map<std::string, int>{{"rank 0", kLines}, {"rank 1", kLines}});
}

TEST_CASE("launching: two nodes meet as with acc launch", "[launching]") {
  const int port = 20000 + ::getpid() % 10000;
  Caller first({"node", "0", std::to_string(port)});
  Caller second({"node", "1", std::to_string(port)});
  CHECK(first.rest() == "Launching training on 2 CPUs.\n0 of 4\n1 of 4\n");
  CHECK(second.rest() == "Launching training on 2 CPUs.\n2 of 4\n3 of 4\n");
}

}  // namespace launching_test
