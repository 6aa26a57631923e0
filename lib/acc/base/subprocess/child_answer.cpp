// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/child_answer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"

namespace acc {

namespace asio = boost::asio;
using boost::system::error_code;

/// One question.
struct ChildAnswer::Impl : std::enable_shared_from_this<ChildAnswer::Impl> {
  Impl(asio::io_context& loop, Done handler) : pipe(loop), timeout(loop), done(std::move(handler)) {}

  void ask(const std::function<void(int to)>& work, std::chrono::milliseconds limit) {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_later("no descriptors are left");
    pipe.assign(ends[0]);
    child = run_in_child(Descriptor(ends[1]), work);
    if (child == 0) return fail_later("no process is left");
    kill_after(limit);
    read();
  }

  void interrupt(int signal, std::chrono::milliseconds limit) {
    if (!done || !is_asking_child(child)) return;
    ::kill(child, signal);
    kill_after(limit);
  }

  void kill_after(std::chrono::milliseconds limit) {
    timeout.expires_after(limit);
    timeout.async_wait([self = weak_from_this()](error_code error) {
      const auto waiter = self.lock();
      if (!waiter || error) return;
      ::kill(waiter->child, SIGKILL);
      waiter->finish({.problem = "there was no answer in time"});
    });
  }

  void read() {
    pipe.async_read_some(asio::buffer(buffer), [self = weak_from_this()](error_code error, std::size_t size) {
      const auto waiter = self.lock();
      if (!waiter || !waiter->done) return;
      waiter->received.append(waiter->buffer.data(), size);
      if (!error) return waiter->read();
      waiter->child = 0;
      waiter->finish({.text = std::move(waiter->received)});
    });
  }

  void fail_later(const char* problem) {
    asio::post(timeout.get_executor(), [self = weak_from_this(), problem] {
      if (const auto waiter = self.lock()) waiter->finish({.problem = problem});
    });
  }

  void finish(Answer answer) {
    const Done handler = std::exchange(done, nullptr);
    timeout.cancel();
    error_code ignored;
    pipe.close(ignored);
    if (handler) handler(std::move(answer));
  }

  asio::posix::stream_descriptor pipe;
  asio::steady_timer timeout;
  std::array<char, std::size_t{16} << 10U> buffer = {};
  std::string received = {};
  Done done;
  pid_t child = 0;
};

ChildAnswer::ChildAnswer(asio::io_context& loop) : loop_(loop) {}

ChildAnswer::~ChildAnswer() = default;

void ChildAnswer::ask(const std::function<void(int to)>& work, std::chrono::milliseconds limit, Done done) {
  impl_ = std::make_shared<Impl>(loop_, std::move(done));
  impl_->ask(work, limit);
}

void ChildAnswer::interrupt(int signal, std::chrono::milliseconds limit) {
  if (impl_) impl_->interrupt(signal, limit);
}

bool ChildAnswer::is_waiting() const {
  return impl_ != nullptr && (impl_->done != nullptr || is_asking_child(impl_->child));
}

}  // namespace acc
