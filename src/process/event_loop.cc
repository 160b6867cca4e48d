#include "process/event_loop.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace muster::process {

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll)));
}

absl::Status EventLoop::AddFd(int fd, uint32_t events, FdHandler handler) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  fds_[fd] = {.events = events, .handler = std::make_shared<FdHandler>(std::move(handler))};
  return absl::OkStatus();
}

void EventLoop::RemoveFd(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  fds_.erase(fd);
  paused_.erase(fd);
}

void EventLoop::PauseFd(int fd, absl::Duration duration) {
  epoll_event none{.events = 0, .data = {.fd = fd}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &none);
  paused_[fd] = base::Clock::Real().Now() + duration;
}

void EventLoop::ResumeFds(absl::Time now) {
  for (auto paused = paused_.begin(); paused != paused_.end();) {
    if (paused->second > now) {
      ++paused;
      continue;
    }
    // RemoveFd() erases from both maps, so every paused descriptor is in fds_.
    epoll_event event{.events = fds_.at(paused->first).events, .data = {.fd = paused->first}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, paused->first, &event);
    paused = paused_.erase(paused);
  }
}

absl::Status EventLoop::HandleSignals(const std::vector<int>& signals, SignalHandler handler) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = base::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return absl::ErrnoToStatus(errno, "signalfd");
  return AddFd(signals_.get(), EPOLLIN, [this, handler = std::move(handler)](uint32_t) {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      handler(static_cast<int>(info.ssi_signo));
    }
  });
}

absl::Status EventLoop::Wait(absl::Duration timeout) {
  const absl::Time now = base::Clock::Real().Now();
  ResumeFds(now);
  for (const auto& [fd, until] : paused_) timeout = std::min(timeout, until - now);
  // Rounded up, so that a timer due in 0.4 ms does not make the loop spin.
  const int64_t ms =
      timeout == absl::InfiniteDuration()
          ? -1
          : std::clamp<int64_t>(
                absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))), 0,
                1'000'000'000);
  std::array<epoll_event, 64> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                             static_cast<int>(ms));
  if (n < 0) return errno == EINTR ? absl::OkStatus() : absl::ErrnoToStatus(errno, "epoll_wait");
  for (int i = 0; i < n; ++i) {
    // An earlier handler of this round may have removed the descriptor, and a handler may remove
    // itself: hence the lookup and the shared ownership.
    const auto it = fds_.find(events[i].data.fd);
    if (it == fds_.end()) continue;
    const std::shared_ptr<FdHandler> handler = it->second.handler;
    (*handler)(events[i].events);
  }
  return absl::OkStatus();
}

}  // namespace muster::process
