// Annotates Abseil's locks for ThreadSanitizer. Debian's Abseil is not instrumented, so accesses
// under an absl::Mutex would be reported as races. This library is loaded before Abseil, reports
// each lock operation and forwards the call. See scripts/tsan.
#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// Inside of Abseil a condition is evaluated under a lock that the sanitizer does not see.
class Inside {
 public:
  Inside() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~Inside() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

#define MUTEX "_ZN4absl7debian35Mutex"
#define COND_VAR "_ZN4absl7debian37CondVar"

void Mutex::Lock() {
  static const auto kNext = Next<void (*)(Mutex*)>(MUTEX "4LockEv");
  kNext(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static const auto kNext = Next<void (*)(Mutex*)>(MUTEX "6UnlockEv");
  __tsan_release(this);
  const Inside inside;
  kNext(this);
}

bool Mutex::TryLock() {
  static const auto kNext = Next<bool (*)(Mutex*)>(MUTEX "7TryLockEv");
  if (!kNext(this)) return false;
  __tsan_acquire(this);
  return true;
}

void Mutex::ReaderLock() {
  static const auto kNext = Next<void (*)(Mutex*)>(MUTEX "10ReaderLockEv");
  kNext(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto kNext = Next<void (*)(Mutex*)>(MUTEX "12ReaderUnlockEv");
  __tsan_release(this);
  const Inside inside;
  kNext(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static const auto kNext =
      Next<void (*)(Mutex*, const Condition&)>(MUTEX "8LockWhenERKNS0_9ConditionE");
  {
    const Inside inside;
    kNext(this, condition);
  }
  __tsan_acquire(this);
}

void Mutex::Await(const Condition& condition) {
  static const auto kNext =
      Next<void (*)(Mutex*, const Condition&)>(MUTEX "5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  {
    const Inside inside;
    kNext(this, condition);
  }
  __tsan_acquire(this);
}

// The versions with a timeout call these.
bool Mutex::AwaitWithDeadline(const Condition& condition, absl::Time deadline) {
  static const auto kNext = Next<bool (*)(Mutex*, const Condition&, absl::Time)>(
      MUTEX "17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_release(this);
  bool met;
  {
    const Inside inside;
    met = kNext(this, condition, deadline);
  }
  __tsan_acquire(this);
  return met;
}

void CondVar::Wait(Mutex* mutex) {
  static const auto kNext = Next<void (*)(CondVar*, Mutex*)>(COND_VAR "4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  kNext(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, absl::Time deadline) {
  static const auto kNext = Next<bool (*)(CondVar*, Mutex*, absl::Time)>(
      COND_VAR "16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = kNext(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

ABSL_NAMESPACE_END
}  // namespace absl
