// SPDX-License-Identifier: Apache-2.0
#include "acc/store/file_store.hpp"

#include <algorithm>
#include <deque>
#include <system_error>
#include <utility>

#include "acc/base/event_loop.hpp"
#include "acc/base/text.hpp"
#include "acc/store/file_log.hpp"
#include "acc/store/shared_file.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;
using std::chrono::milliseconds;

// Bytes of the file read at once.
constexpr std::size_t kPiece = std::size_t{1} << 20U;
// The length of a key, which each store writes at once.
constexpr std::size_t kLengthBytes = 4;

[[noreturn]] void fail(const std::string& what, const std::error_code& error) {
  throw Error({.kind = ErrorKind::rendezvous, .what = what + ": " + error.message()});
}

}  // namespace

struct FileStore::Impl : std::enable_shared_from_this<Impl> {
  Impl(net::io_context& the_loop, std::filesystem::path the_file, const Options& the_options)
      : loop(the_loop), file(std::move(the_file)), options(the_options), timer(loop) {}

  /// An operation on the locked file: `write` returns what to append to it, then `done` is called.
  struct Operation {
    std::function<std::string(const FileLog&)> write = {};
    std::function<void(StoreOutcome)> done = {};
  };

  void ask(Operation operation);
  void run();
  bool perform(const Operation& operation);
  bool refresh(const SharedFile& shared_file);
  bool cut_off_entry(SharedFile& shared_file);
  bool retry_later();
  void poll(const std::vector<std::string>& keys, RunningClock::time_point deadline, const Done& handler);
  void on_lost(const std::string& why);

  net::io_context& loop;
  std::filesystem::path file;
  Options options;
  RunningTimer timer;
  std::function<void()> closed = {};

  std::deque<Operation> queue = {};
  bool scheduled = false;
  bool ended = false;
  bool is_lost = false;
  std::string reason = {};
  std::optional<RunningClock::time_point> blocked_since = {};

  FileLog file_log = {};
  std::size_t position = 0;  // up to which `file_log` has read the file
  std::optional<SharedFile::Identity> identity = {};
  std::size_t least_size = 0;  // of the file, which has been read so far by another store
  struct Incomplete {
    std::size_t position = 0;
    std::size_t size = 0;
    RunningClock::time_point since = {};
  };
  std::optional<Incomplete> incomplete = {};  // the last entry
};

void FileStore::Impl::ask(Operation operation) {
  queue.push_back(std::move(operation));
  if (std::exchange(scheduled, true)) return;
  net::post(loop, [self = shared_from_this()] { self->run(); });
}

void FileStore::Impl::run() {
  while (!ended && !is_lost && !queue.empty()) {
    try {
      if (!perform(queue.front())) return;
    } catch (const Error& error) {
      return on_lost(error.problems().front().what);
    }
    const Operation operation = std::move(queue.front());
    queue.pop_front();
    operation.done(StoreOutcome::done);
  }
  scheduled = false;
  if (is_lost && !ended) on_lost(reason);
}

// Returns false if the file is locked; then tries again later.
bool FileStore::Impl::perform(const Operation& operation) {
  std::error_code error;
  SharedFile shared_file(file, error);
  if (error) fail("the file of the rendezvous cannot be opened", error);
  if (!shared_file.lock(error)) {
    if (!error) return retry_later();
    fail("the file of the rendezvous cannot be locked", error);
  }
  if (!refresh(shared_file) && !cut_off_entry(shared_file)) return retry_later();
  blocked_since.reset();
  incomplete.reset();
  const std::string entries = operation.write(file_log);
  if (entries.empty()) return true;
  shared_file.write(position, entries, error);
  if (error) {
    // An incomplete entry would block all nodes.
    std::error_code ignored;
    shared_file.truncate(position, ignored);
    fail("the file of the rendezvous cannot be written", error);
  }
  position += file_log.read(entries);
  return true;
}

// Returns false if the last entry is incomplete.
bool FileStore::Impl::refresh(const SharedFile& shared_file) {
  std::error_code error;
  const SharedFile::Status now = shared_file.status(error);
  if (error) fail("the file of the rendezvous cannot be read", error);
  if (!now.is_regular)
    throw Error({.kind = ErrorKind::rendezvous, .what = "the rendezvous needs a regular file"});
  if (identity && (*identity != now.identity || now.size < std::max(position, least_size))) {
    throw Error({.kind = ErrorKind::rendezvous,
                 .what = "the file of the rendezvous was removed or replaced while the job ran"});
  }
  identity = now.identity;
  std::string bytes;
  while (position + bytes.size() < now.size) {
    const std::string piece = shared_file.read(position + bytes.size(), kPiece, error);
    if (error) fail("the file of the rendezvous cannot be read", error);
    if (piece.empty()) break;
    bytes += piece;
    const std::size_t whole = file_log.read(bytes);
    bytes.erase(0, whole);
    position += whole;
  }
  return bytes.empty();
}

// Returns false if the incomplete entry may become complete, or if the file may be none of FileStore's.
bool FileStore::Impl::cut_off_entry(SharedFile& shared_file) {
  const auto now = RunningClock::now();
  std::error_code error;
  const std::size_t size = shared_file.status(error).size;
  if (error) fail("the file of the rendezvous cannot be read", error);
  // While it grows, somebody writes it.
  if (!incomplete || incomplete->position != position || incomplete->size != size)
    incomplete = {position, size, now};
  if (now - incomplete->since < options.writing_time) return false;
  if (position == 0 && size < kLengthBytes)
    throw Error({.kind = ErrorKind::rendezvous, .what = "is not a file of torch's FileStore"});
  if (position == 0) return false;
  shared_file.truncate(position, error);
  if (error) fail("the file of the rendezvous cannot be written", error);
  return true;
}

bool FileStore::Impl::retry_later() {
  const auto now = RunningClock::now();
  if (!blocked_since) blocked_since = now;
  if (now - *blocked_since >= options.timeout) {
    throw Error({.kind = ErrorKind::rendezvous,
                 .what = "another node keeps the file of the rendezvous locked, or died while it wrote"});
  }
  timer.expires_after(options.retry);
  timer.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->run();
  });
  return false;
}

// Calls all pending handlers. Any of them may destroy the store.
void FileStore::Impl::on_lost(const std::string& cause) {
  const auto self = shared_from_this();
  is_lost = true;
  reason = cause;
  scheduled = false;
  for (const Operation& operation : std::exchange(queue, {})) {
    if (!ended) operation.done(StoreOutcome::closed);
  }
  const auto handler = std::exchange(closed, {});
  if (handler && !ended) handler();
}

FileStore::FileStore(net::io_context& loop, std::filesystem::path file, const Options& options)
    : impl_(std::make_shared<Impl>(loop, std::move(file), options)) {}

FileStore::~FileStore() {
  close();
}

void FileStore::close() {
  impl_->ended = true;
  impl_->timer.cancel();
  impl_->queue.clear();
  impl_->closed = {};
}

void FileStore::on_closed(std::function<void()> closed) {
  impl_->closed = std::move(closed);
}

Problem FileStore::loss() const {
  return {.what = impl_->reason.empty() ? "the file of the rendezvous cannot be used" : impl_->reason,
          .where = impl_->file.string(),
          .hint = "all nodes need a file that they can read and write"};
}

std::unique_ptr<Store> FileStore::open_again(RunningClock::time_point /*deadline*/,
                                             std::function<void(std::optional<Error>)> opened) const {
  auto store = std::make_unique<FileStore>(impl_->loop, impl_->file, impl_->options);
  store->impl_->identity = impl_->identity;
  store->impl_->least_size = std::max(impl_->position, impl_->least_size);
  store->check({}, [impl = store->impl_.get(), opened = std::move(opened)](StoreOutcome outcome, bool) {
    if (outcome == StoreOutcome::done) return opened(std::nullopt);
    opened(Error(
        {.kind = ErrorKind::rendezvous, .what = impl->reason, .where = impl->file.string(), .hint = {}}));
  });
  return store;
}

void FileStore::multi_set(Pairs pairs, Done handler) {
  impl_->ask({.write =
                  [pairs = std::move(pairs)](const FileLog&) {
                    std::string entries;
                    for (const auto& [key, value] : pairs) entries += file_log_entry(key, value);
                    return entries;
                  },
              .done =
                  [handler = std::move(handler)](StoreOutcome outcome) {
                    if (handler) handler(outcome);
                  }});
}

void FileStore::multi_get(std::vector<std::string> keys, Handler<Values> handler) {
  const auto result = std::make_shared<Values>();
  impl_->ask({.write =
                  [keys = std::move(keys), result](const FileLog& log) {
                    std::vector<std::string> values;
                    for (const std::string& key : keys) {
                      const std::string* value = log.find(key);
                      if (value == nullptr) return std::string();
                      values.push_back(*value);
                    }
                    *result = std::move(values);
                    return std::string();
                  },
              .done = [handler = std::move(handler),
                       result](StoreOutcome outcome) { handler(outcome, std::move(*result)); }});
}

void FileStore::check(std::vector<std::string> keys, Handler<bool> handler) {
  multi_get(std::move(keys), [handler = std::move(handler)](StoreOutcome outcome, const Values& values) {
    handler(outcome, values.has_value());
  });
}

void FileStore::add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) {
  const auto sum = std::make_shared<std::int64_t>(delta);
  impl_->ask({.write =
                  [key = std::move(key), sum](const FileLog& log) {
                    const std::string* before = log.find(key);
                    if (before != nullptr) *sum += parse_integer(*before).value_or(0);
                    return file_log_entry(key, std::to_string(*sum));
                  },
              .done = [handler = std::move(handler), sum](StoreOutcome outcome) { handler(outcome, *sum); }});
}

void FileStore::compare_set(std::string key, std::string expected, std::string desired,
                            Handler<std::string> handler) {
  const auto now = std::make_shared<std::string>();
  impl_->ask({.write =
                  [key = std::move(key), expected = std::move(expected), desired = std::move(desired),
                   now](const FileLog& log) {
                    const std::string* before = log.find(key);
                    const bool matches = before == nullptr ? expected.empty() : *before == expected;
                    *now = matches ? desired : before == nullptr ? expected : *before;
                    return matches ? file_log_entry(key, desired) : std::string();
                  },
              .done = [handler = std::move(handler), now](StoreOutcome outcome) { handler(outcome, *now); }});
}

void FileStore::delete_key(std::string key, Handler<bool> handler) {
  const auto existed = std::make_shared<bool>(false);
  impl_->ask({.write =
                  [key = std::move(key), existed](const FileLog& log) {
                    *existed = log.find(key) != nullptr;
                    return *existed ? file_log_deletion(key) : std::string();
                  },
              .done = [handler = std::move(handler),
                       existed](StoreOutcome outcome) { handler(outcome, *existed); }});
}

void FileStore::wait(std::vector<std::string> keys, milliseconds timeout, Done handler) {
  impl_->poll(keys, RunningClock::now() + timeout, handler);
}

void FileStore::Impl::poll(const std::vector<std::string>& keys, RunningClock::time_point deadline,
                           const Done& handler) {
  const auto all_here = std::make_shared<bool>(false);
  const auto exists = [](const FileLog& log) {
    return [&log](const std::string& key) { return log.find(key) != nullptr; };
  };
  ask({.write =
           [keys, all_here, exists](const FileLog& log) {
             *all_here = std::ranges::all_of(keys, exists(log));
             return std::string();
           },
       .done =
           [this, keys, deadline, handler, all_here](StoreOutcome outcome) {
             if (outcome != StoreOutcome::done || *all_here) return handler(outcome);
             if (RunningClock::now() >= deadline) return handler(StoreOutcome::timed_out);
             const auto pause = std::make_shared<RunningTimer>(loop, options.poll_interval);
             pause->async_wait([self = shared_from_this(), pause, keys, deadline, handler](const auto&) {
               if (!self->ended) self->poll(keys, deadline, handler);
             });
           }});
}

}  // namespace acc::launcher
