// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_curl.hpp"

#include <dlfcn.h>
#include <fcntl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "acc/base/blocking_call.hpp"
#include "acc/base/error.hpp"
#include "acc/base/event_loop.hpp"

namespace acc::launcher {
namespace {

// The few declarations of curl.h that are used. They are copied, since the header would be needed to build
// acc, of which only jobs that meet at etcd load libcurl; its interface is stable since version 7.
using Easy = void;
using List = void;
constexpr int kCurlOk = 0;
constexpr long kGlobalAll = 3;
constexpr int kTimeoutMs = 155;
constexpr int kConnectTimeoutMs = 156;
constexpr int kNoSignal = 99;
constexpr int kNoProgress = 43;
constexpr int kForbidReuse = 75;
constexpr int kPostFieldSize = 60;
constexpr int kUrl = 10002;
constexpr int kWriteData = 10001;
constexpr int kErrorBuffer = 10010;
constexpr int kPostFields = 10015;
constexpr int kHttpHeader = 10023;
constexpr int kSslCert = 10025;
constexpr int kProgressData = 10057;
constexpr int kCaInfo = 10065;
constexpr int kSslKey = 10087;
constexpr int kNoProxy = 10177;
constexpr int kWriteFunction = 20011;
constexpr int kSockOptFunction = 20148;
constexpr int kProgressFunction = 20219;
constexpr int kResponseCode = 0x200002;

constexpr std::size_t kMaxReplyBytes = std::size_t{1} << 20U;

std::size_t append_body(const char* bytes, std::size_t size, std::size_t count, void* answer) {
  auto& text = *static_cast<std::string*>(answer);
  if (text.size() + size * count > kMaxReplyBytes) return 0;
  text.append(bytes, size * count);
  return size * count;
}

// Workers that are started meanwhile must not inherit the socket.
int close_on_exec(void* /*unused*/, int socket, int /*purpose*/) {
  return ::fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 ? 0 : 1;
}

int is_stopped(void* stopped, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
  return static_cast<std::atomic<bool>*>(stopped)->load() ? 1 : 0;
}

/// The functions of libcurl, loaded with dlopen.
class Curl {
 public:
  // Debian has two builds: with OpenSSL and with GnuTLS.
  Curl() {
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
      if (library_ == nullptr) library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr) missing("is not installed");
    find(global_init_, "curl_global_init");
    find(init_, "curl_easy_init");
    find(set_, "curl_easy_setopt");
    find(perform_, "curl_easy_perform");
    find(info_, "curl_easy_getinfo");
    find(cleanup_, "curl_easy_cleanup");
    find(strerror_, "curl_easy_strerror");
    find(append_, "curl_slist_append");
    find(free_list_, "curl_slist_free_all");
    if (global_init_(kGlobalAll) != kCurlOk) missing("does not start");
  }

  EtcdReply post(const EtcdCurlOptions& options, const EtcdRequest& request, std::atomic<bool>& stopped) {
    EtcdReply reply;
    std::array<char, 256> error_text = {};
    const std::string url = options.url + request.path;
    const std::unique_ptr<List, void (*)(List*)> headers(append_(nullptr, "Content-Type: application/json"),
                                                         free_list_);
    const std::unique_ptr<Easy, void (*)(Easy*)> easy(init_(), cleanup_);
    if (!easy || !headers) return {.body = "libcurl is out of memory"};
    set(easy.get(), kUrl, url.c_str());
    set(easy.get(), kHttpHeader, headers.get());
    set(easy.get(), kPostFields, request.body.c_str());
    set(easy.get(), kPostFieldSize, static_cast<long>(request.body.size()));
    set(easy.get(), kTimeoutMs, static_cast<long>(options.timeout.count()));
    set(easy.get(), kConnectTimeoutMs, static_cast<long>(options.timeout.count()));
    set(easy.get(), kNoSignal, 1L);
    set(easy.get(), kForbidReuse, 1L);
    // An etcd inside the cluster is not behind the proxy to the outside.
    set(easy.get(), kNoProxy, "*");
    set(easy.get(), kErrorBuffer, error_text.data());
    set(easy.get(), kWriteFunction, &append_body);
    set(easy.get(), kWriteData, &reply.body);
    set(easy.get(), kSockOptFunction, &close_on_exec);
    set(easy.get(), kNoProgress, 0L);
    set(easy.get(), kProgressFunction, &is_stopped);
    set(easy.get(), kProgressData, &stopped);
    if (!options.cert.empty()) set(easy.get(), kSslCert, options.cert.c_str());
    if (!options.key.empty()) set(easy.get(), kSslKey, options.key.c_str());
    if (!options.cacert.empty()) set(easy.get(), kCaInfo, options.cacert.c_str());
    if (const int code = perform_(easy.get()); code != kCurlOk) {
      return {.body =
                  error_text.front() != '\0' ? std::string(error_text.data()) : std::string(strerror_(code))};
    }
    long status = 0;
    info_(easy.get(), kResponseCode, &status);
    reply.status = static_cast<int>(status);
    return reply;
  }

 private:
  [[noreturn]] static void missing(const std::string& what) {
    throw Error({.kind = ErrorKind::system,
                 .what = "the etcd rendezvous needs libcurl.so.4, which " + what,
                 .hint = "install it (Debian: libcurl4, Fedora: libcurl), or use --rdzv-backend c10d"});
  }

  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (function == nullptr) missing(std::string("has no ") + name);
  }

  template <typename Value>
  void set(Easy* easy, int option, Value value) const {
    set_(easy, option, value);
  }

  // Never unloaded: its TLS library may have registered exit handlers.
  void* library_ = nullptr;
  int (*global_init_)(long) = nullptr;
  Easy* (*init_)() = nullptr;
  int (*set_)(Easy*, int, ...) = nullptr;
  int (*perform_)(Easy*) = nullptr;
  int (*info_)(Easy*, int, ...) = nullptr;
  void (*cleanup_)(Easy*) = nullptr;
  const char* (*strerror_)(int) = nullptr;
  List* (*append_)(List*, const char*) = nullptr;
  void (*free_list_)(List*) = nullptr;
};

// What the gateway and its thread share.
struct Requests {
  struct Job {
    EtcdRequest request;
    EtcdGateway::Handler handler;
    /// Keeps the loop running.
    net::executor_work_guard<net::io_context::executor_type> work;
  };

  Requests(net::io_context& the_loop, EtcdCurlOptions the_options)
      : loop(&the_loop), options(std::move(the_options)) {}

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stopped || !jobs.empty(); });
      if (stopped) break;
      const EtcdRequest request = jobs.front().request;
      lock.unlock();
      EtcdReply reply = curl.post(options, request, stopped);
      lock.lock();
      if (stopped) break;
      // The handler is destroyed in the loop's thread.
      net::post(*loop, [handler = std::move(jobs.front().handler), reply = std::move(reply),
                        alive = std::weak_ptr<bool>(alive)] {
        if (!alive.expired()) handler(reply);
      });
      jobs.pop_front();
    }
  }

  void stop() {
    const std::lock_guard lock(mutex);
    stopped = true;
    alive.reset();
    jobs.clear();
    loop = nullptr;
    wake.notify_one();
  }

  net::io_context* loop;
  EtcdCurlOptions options;
  Curl curl = {};
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::atomic<bool> stopped = false;
  std::mutex mutex = {};
  std::condition_variable wake = {};
  // The first one is being done.
  std::deque<Job> jobs = {};
};

}  // namespace

struct EtcdCurl::Impl {
  std::shared_ptr<Requests> requests;
  BlockingCall<bool> thread;
};

EtcdCurl::EtcdCurl(net::io_context& loop, const EtcdCurlOptions& options) {
  auto requests = std::make_shared<Requests>(loop, options);
  impl_.reset(new Impl{.requests = requests, .thread = BlockingCall<bool>([requests] {
                                               requests->work();
                                               return true;
                                             })});
}

// At its end the thread calls functions of its TLS library, which must not meet that library's exit handlers.
// A name that is looked up can block libcurl for longer than its time limit, and then the thread stays
// behind.
EtcdCurl::~EtcdCurl() {
  impl_->requests->stop();
  constexpr std::chrono::seconds kLimit{2};  // libcurl asks once a second whether to go on
  impl_->thread.result(std::chrono::steady_clock::now() + kLimit);
}

void EtcdCurl::post(const EtcdRequest& request, Handler handler) {
  Requests& requests = *impl_->requests;
  {
    const std::lock_guard lock(requests.mutex);
    requests.jobs.push_back({request, std::move(handler), net::make_work_guard(*requests.loop)});
  }
  requests.wake.notify_one();
}

}  // namespace acc::launcher
