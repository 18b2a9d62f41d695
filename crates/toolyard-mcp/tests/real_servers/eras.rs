//! Eras are found by what a server answers, however long it takes, and pins hold across them.

use std::{sync::Arc, time::Instant};

use toolyard_core::ProtocolEra;
use toolyard_mcp::{cache::ServerCache, client::NobodyToAsk};

use crate::{
    house::House,
    place::Place,
    row::{Kind, Wire, forced, row},
};

/// Longer than a program may be quiet before it is asked in the other way as well.
const SLOW: u64 = 12;

#[tokio::test]
async fn a_slow_modern_server_is_not_taken_for_legacy() {
    a_slow_start_decides_nothing(Kind::Time, ProtocolEra::Modern).await;
}

#[tokio::test]
async fn a_slow_legacy_server_is_found() {
    a_slow_start_decides_nothing(Kind::OldExcel, ProtocolEra::Legacy).await;
}

async fn a_slow_start_decides_nothing(kind: Kind, era: ProtocolEra) {
    let place = Place::open(row(kind, Wire::Stdio)).await;
    let house = House::new(place.late(SLOW), place.path()).await;
    let started = Instant::now();
    assert_eq!(house.session().await.era(), era);
    assert!(started.elapsed().as_secs() >= SLOW);
    house.until_tools(row(kind, Wire::Stdio).tools()).await;
    house.manager.close().await;
}

#[tokio::test]
async fn a_server_that_changes_its_era_keeps_its_tools() {
    for kind in [Kind::NewExcel, Kind::Time] {
        let memory = ServerCache::in_memory();
        let modern = row(kind, Wire::Stdio);
        let place = Place::open(modern).await;
        let legacy = forced(kind, Wire::Stdio, ProtocolEra::Legacy);
        for (era, first_seen) in [(None, modern.tools()), (legacy.forced, 0), (Some(ProtocolEra::Modern), 0)]
        {
            let mut config = place.config();
            config.era = era;
            let house = House::furnished(config, place.path(), Arc::new(NobodyToAsk), memory.clone()).await;
            let session = house.session().await;
            assert_eq!(session.era(), era.unwrap_or(ProtocolEra::Modern));
            let shelf = house.server().shelf();
            assert_eq!(shelf.first_seen.len(), first_seen);
            assert_eq!(shelf.out_of_service, Vec::new());
            assert_eq!(shelf.in_service.len(), modern.tools());
            house.manager.close().await;
        }
    }
}

#[tokio::test]
async fn what_is_remembered_is_there_before_anything_runs() {
    let memory = ServerCache::in_memory();
    let row = row(Kind::Time, Wire::Stdio);
    let place = Place::open(row).await;
    let house = |memory| House::furnished(place.config(), place.path(), Arc::new(NobodyToAsk), memory);
    let first = house(memory.clone()).await;
    first.session().await;
    first.manager.close().await;
    let second = house(memory).await;
    assert_eq!((second.names().len(), place.processes().len()), (row.tools(), 0));
    let (tool, arguments) = row.harmless(place.path());
    second.call(tool, arguments).await.unwrap();
    assert_eq!(place.processes().len(), 1);
    second.manager.close().await;
    assert_eq!(place.processes(), Vec::<u32>::new());
}
