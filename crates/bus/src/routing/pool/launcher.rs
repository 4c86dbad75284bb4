//! Agents that are started when a message names them. Each is a pool with one worker, which knows
//! plain ACP only. A pool that no client uses is removed after a while.

use super::{
    super::{
        config::{OuterSessionId, PoolConfig, RestartRule, SessionAffinity, WorkerDeathRule},
        context::{BusContext, BusTimer},
        ids::PoolId,
        tables::{CallPeer, RoutingTables},
        worker::{Worker, Workers},
    },
    PoolState, Pools,
};
use jackfield_protocol::Fault;
use std::sync::Arc;

impl Pools {
    /// Whether the launcher can start this agent.
    pub(super) fn can_launch(&self, agent: &str) -> bool {
        self.launcher.as_ref().is_some_and(|it| it.agents.contains_key(agent))
    }

    /// Starts an agent of the launcher. If too many run, the one that was unused for the longest
    /// time makes room.
    pub(super) fn launch_agent(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        agent: &str,
    ) -> Result<PoolId, Fault> {
        let unknown = || Fault::NoWorker { why: format!("unknown agent `{agent}`") };
        let launcher = self.launcher.as_ref().ok_or_else(unknown)?;
        let (id, command) = launcher.agents.get_key_value(agent).ok_or_else(unknown)?;
        let (agents_max, idle_ms) = (launcher.agents_max, launcher.idle_ms);
        let config = PoolConfig {
            id: Arc::clone(id),
            command: Arc::clone(command),
            instances: 1,
            restart: RestartRule::Always,
            affinity: SessionAffinity::Session,
            on_death: WorkerDeathRule::End,
            outer_session_id: OuterSessionId::Restore,
            health: None,
        };
        let running = || self.by_id.values().filter(|it| it.is_launched && !it.is_removed);
        let count = running().count();
        if agents_max <= count {
            let unused = running().filter(|it| !it.is_used(workers, tables));
            let Some(oldest) = unused.min_by_key(|it| it.last_used_at).map(|it| it.id) else {
                let what = format!("{count} agents are in use, which is the limit `max_agents`");
                return Err(Fault::Overloaded { what });
            };
            self.retire_pool(cx, workers, tables, oldest);
        }
        let pool = self.add_pool(cx, workers, config);
        if let Some(it) = self.by_id.get_mut(&pool) {
            it.is_launched = true;
        }
        cx.set_timer_in(idle_ms, BusTimer::IdleAgent(pool));
        Ok(pool)
    }

    /// Stops an agent that no client has used for the configured time.
    pub(in super::super) fn stop_idle_agent(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        id: PoolId,
    ) {
        let Some(idle_ms) = self.launcher.as_ref().map(|it| it.idle_ms) else { return };
        let Some(pool) = self.by_id.get(&id).filter(|it| it.is_launched && !it.is_removed) else {
            return;
        };
        let stop_at = pool.last_used_at.plus(idle_ms);
        if pool.is_used(workers, tables) {
            cx.set_timer_in(idle_ms, BusTimer::IdleAgent(id));
        } else if cx.now() < stop_at {
            cx.set_timer(stop_at, BusTimer::IdleAgent(id));
        } else {
            self.retire_pool(cx, workers, tables, id);
        }
    }

    /// Removes a pool after its workers have ended.
    pub(super) fn retire_pool(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        id: PoolId,
    ) {
        if let Some(pool) = self.by_id.get_mut(&id) {
            pool.retire_workers(cx, workers, tables);
            self.remove_pool_if_empty(workers, tables, id);
        }
    }
}

impl PoolState {
    /// Whether a client uses a session of the pool or waits for a response.
    pub(super) fn is_used(&self, workers: &Workers, tables: &RoutingTables) -> bool {
        let has_calls =
            |it: &Worker| tables.calls.received_by(CallPeer::Worker(it.id())).next().is_some();
        workers.in_pool(self.id).any(|it| 0 < it.load(tables) || has_calls(it))
    }
}
