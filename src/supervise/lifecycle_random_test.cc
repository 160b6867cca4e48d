// Under random events, every job ends, without spinning, with all tasks in a final state.
#include <random>

#include "supervise/lifecycle.h"
#include "supervise/lifecycle_testing.h"

namespace muster::supervise {
namespace {

// Simulates processes that end, ignore requests and become ready at random.
class RandomPlay {
 public:
  explicit RandomPlay(unsigned seed) : random_(seed), life_(RandomJob(), now_) {}

  void RunToEnd() {
    const absl::Time stop_at = now_ + absl::Minutes(10);
    bool stopped = false;
    int idle_turns = 0;
    for (int turn = 0; !life_.done(); ++turn) {
      ASSERT_LT(turn, 100'000) << "does not end";
      CarryOut();
      life_.Advance(now_);
      if (HasFailure()) return;
      if (!stopped && now_ >= stop_at) {
        stopped = true;
        life_.RequestStop("enough", false, now_);
        continue;
      }
      if (!stopped && Dice(40)) DisturbIt();
      if (!processes_.empty() && NextProcessEvent() <= now_) {
        LetProcessesAct();
        idle_turns = 0;
        continue;
      }
      const absl::Time next = std::min(
          {life_.next_timer(), NextProcessEvent(), stopped ? absl::InfiniteFuture() : stop_at});
      ASSERT_NE(next, absl::InfiniteFuture()) << "waits for nothing";
      idle_turns = next <= now_ ? idle_turns + 1 : 0;
      // With a back-off of 0 a timer may be due immediately, but not repeatedly.
      ASSERT_LT(idle_turns, 5) << "spins";
      now_ = std::max(now_, next);
    }
    CarryOut();
    ASSERT_TRUE(processes_.empty()) << "left running";
    ASSERT_TRUE(job::IsFinal(life_.state()));
    for (const auto& [id, task] : life_.tasks()) {
      ASSERT_TRUE(job::IsFinal(task.state)) << id.ToString() << " is " << job::ToString(task.state);
    }
    ASSERT_EQ(life_.next_timer(), absl::InfiniteFuture());
    ASSERT_EQ(life_.state() == job::JobState::kFailed, life_.failure().has_value());
  }

 private:
  struct Process {
    absl::Time ends;
    absl::Time ready;
    int exit_code;
    bool heeds_term;
  };

  static bool HasFailure() { return testing::Test::HasFatalFailure(); }
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool Dice(int one_in) { return Below(one_in) == 0; }
  absl::Duration UpTo(absl::Duration most) { return most * Below(1000) / 1000; }

  job::JobSpec RandomJob() {
    std::vector<job::RoleSpec> roles;
    for (const char* name : {"chief", "worker", "ps", "evaluator", "actor"}) {
      const bool needed = std::string(name) == "worker";
      if (!needed && Dice(2)) continue;
      const bool many = std::string(name) == "worker" || std::string(name) == "ps";
      job::RoleSpec role =
          Role(name, many ? 1 + Below(3) : 1, static_cast<job::RestartPolicy>(Below(4)));
      if (Dice(3)) role.ready = job::Readiness::kListening;
      roles.push_back(role);
    }
    job::Policies policies{
        .max_restarts = Below(4),
        .restart_scope = Dice(2) ? job::RestartScope::kJob : job::RestartScope::kTask,
        .backoff = UpTo(absl::Seconds(4)),
        .max_backoff = UpTo(absl::Seconds(10)),
        .start_timeout = absl::Seconds(1) + UpTo(absl::Seconds(30)),
        .stop_grace = UpTo(absl::Seconds(20)),
        .finish_grace = UpTo(absl::Seconds(20)),
        .success = Dice(2) ? job::SuccessPolicy::kChief : job::SuccessPolicy::kAllWorkers,
        .stall = job::StallPolicy{absl::Minutes(1),
                                  Dice(2) ? job::StallAction::kRestart : job::StallAction::kReport},
    };
    if (Dice(4)) policies.deadline = UpTo(absl::Minutes(5));
    job::JobSpec spec = Job(std::move(roles), policies);
    spec.dynamic_workers = Dice(3);
    return spec;
  }

  void CarryOut() {
    for (auto actions = life_.TakeActions(); !actions.empty(); actions = life_.TakeActions()) {
      for (const Lifecycle::Action& action : actions) {
        if (const auto* start = std::get_if<Lifecycle::Start>(&action)) StartProcess(*start);
        if (const auto* end = std::get_if<Lifecycle::End>(&action)) EndProcess(*end);
      }
    }
  }

  void StartProcess(const Lifecycle::Start& start) {
    const auto task = life_.tasks().find(start.task);
    if (task == life_.tasks().end() || task->second.state != job::TaskState::kPending ||
        task->second.attempt != start.attempt) {
      return;
    }
    ASSERT_FALSE(life_.ending());
    ASSERT_FALSE(processes_.contains(start.task)) << "runs twice at once";
    if (Dice(30)) {
      life_.OnEnded(start.task, {.reason = "no such program", .may_retry = Dice(2)}, now_);
      return;
    }
    constexpr int kCodes[] = {0, 0, 0, 1, 2, 127, 137, 139, 143};
    processes_[start.task] = {
        .ends = Dice(8) ? absl::InfiniteFuture() : now_ + UpTo(absl::Minutes(2)),
        .ready = Dice(6) ? absl::InfiniteFuture() : now_ + UpTo(absl::Seconds(8)),
        .exit_code = kCodes[Below(std::size(kCodes))],
        .heeds_term = !Dice(3)};
    life_.OnStarted(start.task, now_);
  }

  void EndProcess(const Lifecycle::End& end) {
    const auto found = processes_.find(end.task);
    if (found == processes_.end()) return;
    Process& process = found->second;
    if (end.kill) {
      process.ends = std::min(process.ends, now_ + UpTo(absl::Seconds(7)));
      process.exit_code = 137;
    } else if (process.heeds_term) {
      process.ends = std::min(process.ends, now_ + UpTo(absl::Seconds(3)));
    }
  }

  absl::Time NextProcessEvent() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [id, process] : processes_)
      next = std::min({next, process.ends, process.ready});
    return next;
  }

  void LetProcessesAct() {
    std::vector<cluster::TaskId> ended;
    for (auto& [id, process] : processes_) {
      if (process.ready <= now_) {
        process.ready = absl::InfiniteFuture();
        life_.OnReady(id, now_);
      }
      if (process.ends <= now_) ended.push_back(id);
    }
    for (const cluster::TaskId& id : ended) {
      AttemptEnd end = ExitWith(processes_.at(id).exit_code);
      end.port_taken = end.exit_code != 0 && Dice(10);
      processes_.erase(id);
      life_.OnEnded(id, end, now_);
    }
  }

  void DisturbIt() {
    if (Dice(4) && !processes_.empty()) {
      life_.OnStalled(processes_.begin()->first, "stalled", now_);
    } else if (Dice(6)) {
      life_.RequestStop("stopped by the user", Dice(2), now_);
    } else {
      ChangeIt();
    }
  }

  void ChangeIt() {
    job::JobSpec spec = life_.spec();
    UpdatePlan plan;
    for (job::RoleSpec& role : spec.roles) {
      const int before = role.replicas;
      if (role.name == "worker") role.replicas = 1 + Below(3);
      for (int i = before; i < role.replicas; ++i) plan.added.push_back({role.name, i});
      for (int i = role.replicas; i < before; ++i) plan.removed.push_back({role.name, i});
      for (int i = 0; i < std::min(before, role.replicas); ++i) {
        (Dice(2) ? plan.kept : plan.restarted).push_back({role.name, i});
      }
    }
    if (Dice(3)) spec.policies.deadline = UpTo(absl::Minutes(5));
    const absl::Status status = life_.Update(std::move(spec), plan, now_);
    ASSERT_TRUE(status.ok() || status.code() == absl::StatusCode::kFailedPrecondition);
  }

  std::mt19937 random_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  Lifecycle life_;
  std::map<cluster::TaskId, Process> processes_;
};

TEST(LifecycleRandomTest, EveryJobEnds) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomPlay(seed).RunToEnd();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace muster::supervise
