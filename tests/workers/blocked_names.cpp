// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD in which the lookup of the name BLOCKED_NAME never ends, as with a DNS server that
// does not answer. It writes a byte to the pipe BLOCKED_NAME_PIPE first.
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  const char* blocked = std::getenv("BLOCKED_NAME");
  if (blocked != nullptr && name != nullptr && std::string_view(name) == blocked) {
    const int pipe = ::open(std::getenv("BLOCKED_NAME_PIPE"), O_WRONLY | O_CLOEXEC);
    if (::write(pipe, "x", 1) != 1) ::abort();
    while (true) ::pause();
  }
  static const auto next = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(name, service, hints, result);
}
