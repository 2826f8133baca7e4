use std::time::Instant;
use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::{Core, Options};
use crate::workload::*;
fn rss() -> String { std::fs::read_to_string("/proc/self/status").unwrap().lines().filter(|l| l.starts_with("VmRSS")||l.starts_with("VmHWM")).collect::<Vec<_>>().join(" ") }
fn num(name: &str, d: u32) -> u32 { std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(d) }
#[test]
fn tmp_mixed() {
    let n = num("N", 0); if n == 0 { return; }
    let w = bench_workload(n, num("P", n*10), num("K", 64), 1);
    let mut core = Core::new(Options::default(), &SchedulerConf::tephra());
    let t = Instant::now();
    w.residents(&mut |e| core.apply(e)); w.waiting(&mut |e| core.apply(e));
    eprintln!("build {:?} {}", t.elapsed(), rss());
    let mut total = 0.0; let mut bound=0;
    for s in 0..5 { if s==0 && std::env::var_os("WAIT").is_some() { std::thread::sleep(std::time::Duration::from_millis(2000)); } let t = Instant::now(); let r = core.session(1000*s); let e=t.elapsed(); total += e.as_secs_f64(); bound+=r.bound;
        let gangs = r.decisions.iter().filter(|d| matches!(d, Decision::Bind(_))).count();
        let mut kinds = std::collections::BTreeMap::new(); for d in &r.decisions { let k = match d { Decision::Bind(_)=>"bind", Decision::Evict{..}=>"evict", Decision::PodGroupStatus{..}=>"status", Decision::QueueAllocated{..}=>"queue", Decision::PodCondition{..}=>"cond", Decision::Notice(_)=>"notice"}; *kinds.entry(k).or_insert(0)+=1; }
        eprintln!("session {s}: {e:?} bound {} gangs {gangs} refused {} {kinds:?}", r.bound, r.refused); if r.bound==0 {break;} }
    eprintln!("pods/s {:.0} {}", bound as f64/total, rss());
    let mut held=0; w.withdraw(&mut |e| {core.apply(e); held+=1;}); let t=Instant::now(); core.session(9000); eprintln!("quiet session {:?}", t.elapsed());
    for round in 0..9 { let mut ev=vec![]; w.change(round, &mut |e| ev.push(e)); let n=ev.len(); let t=Instant::now(); for e in ev {core.apply(e);} let a=t.elapsed(); let r=core.session(10000+round as i64); eprintln!("round {n} events apply {a:?} total {:?} decisions {}", t.elapsed(), r.decisions.len()); }
}
#[test]
fn tmp_volcano() {
    let n = num("V", 0); if n == 0 { return; }
    let mut conf = SchedulerConf::volcano(); for t in &mut conf.tiers { t.plugins.retain(|p| p.name != "overcommit"); }
    for _ in 0..3 {
    let mut core = Core::new(Options::default(), &conf);
    volcano_workload(num("G",100), 100, n).events(&mut |e| core.apply(e));
    for s in 0..2 { let t=Instant::now(); let r=core.session(s*1000); let e=t.elapsed(); eprintln!("session {s}: {e:?} bound {} {:.0}/s", r.bound, r.bound as f64/e.as_secs_f64()); }
    }
}
