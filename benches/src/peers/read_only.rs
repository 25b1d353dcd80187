//! Maps that cannot wait, for reads alone: how far the caches are from them.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use left_right::Absorb;
use parking_lot::Mutex;

use crate::data::{Hasher, Key, Record, Status};

/// A map that was filled once.
pub trait ReadOnly: Sized + Send + Sync + 'static {
    /// Its name in tables and charts.
    const NAME: &'static str;

    /// What a thread reads through.
    type Handle: Send;

    /// A map that holds all keys.
    fn filled(keys: &[Key]) -> Self;
    /// A handle for one thread.
    fn handle(&self) -> Self::Handle;
    /// Looks a key up and looks at what is there.
    fn read(handle: &Self::Handle, key: &Key);
}

fn records(keys: &[Key]) -> impl Iterator<Item = (Key, Arc<Record>)> {
    keys.iter()
        .map(|key| (key.clone(), Record::new(Status::new(1), 1)))
}

/// The standard map, shared and never changed: the limit.
#[derive(Debug)]
pub struct Plain(Arc<HashMap<Key, Arc<Record>, Hasher>>);

impl ReadOnly for Plain {
    const NAME: &'static str = "HashMap (read-only)";
    type Handle = Arc<HashMap<Key, Arc<Record>, Hasher>>;

    fn filled(keys: &[Key]) -> Self {
        Self(Arc::new(records(keys).collect()))
    }

    fn handle(&self) -> Self::Handle {
        Arc::clone(&self.0)
    }

    #[inline]
    fn read(handle: &Self::Handle, key: &Key) {
        black_box(handle.get(key).map(|record| record.status.generation));
    }
}

/// papaya, pinned for each read.
#[derive(Debug)]
pub struct Papaya(Arc<papaya::HashMap<Key, Arc<Record>, Hasher>>);

impl ReadOnly for Papaya {
    const NAME: &'static str = "papaya (map only)";
    type Handle = Arc<papaya::HashMap<Key, Arc<Record>, Hasher>>;

    fn filled(keys: &[Key]) -> Self {
        let map = papaya::HashMap::with_capacity_and_hasher(keys.len(), Hasher::default());
        for (key, record) in records(keys) {
            map.pin().insert(key, record);
        }
        Self(Arc::new(map))
    }

    fn handle(&self) -> Self::Handle {
        Arc::clone(&self.0)
    }

    #[inline]
    fn read(handle: &Self::Handle, key: &Key) {
        black_box(handle.pin().get(key).map(|record| record.status.generation));
    }
}

/// flurry, pinned for each read.
#[derive(Debug)]
pub struct Flurry(Arc<flurry::HashMap<Key, Arc<Record>, Hasher>>);

impl ReadOnly for Flurry {
    const NAME: &'static str = "flurry (map only)";
    type Handle = Arc<flurry::HashMap<Key, Arc<Record>, Hasher>>;

    fn filled(keys: &[Key]) -> Self {
        let map = flurry::HashMap::with_capacity_and_hasher(keys.len(), Hasher::default());
        for (key, record) in records(keys) {
            map.pin().insert(key, record);
        }
        Self(Arc::new(map))
    }

    fn handle(&self) -> Self::Handle {
        Arc::clone(&self.0)
    }

    #[inline]
    fn read(handle: &Self::Handle, key: &Key) {
        black_box(handle.pin().get(key).map(|record| record.status.generation));
    }
}

/// A map kept twice by left-right: one is read while the other is written.
#[derive(Debug, Default, Clone)]
pub struct Twin(HashMap<Key, Arc<Record>, Hasher>);

impl Absorb<(Key, Arc<Record>)> for Twin {
    fn absorb_first(&mut self, (key, record): &mut (Key, Arc<Record>), _: &Self) {
        self.0.insert(key.clone(), Arc::clone(record));
    }

    fn sync_with(&mut self, first: &Self) {
        self.clone_from(first);
    }
}

/// left-right, entered for each read.
#[derive(Debug)]
pub struct LeftRight {
    reader: left_right::ReadHandleFactory<Twin>,
    /// Reads end when the writer is dropped.
    _writer: Mutex<left_right::WriteHandle<Twin, (Key, Arc<Record>)>>,
}

impl ReadOnly for LeftRight {
    const NAME: &'static str = "left-right (map only)";
    type Handle = left_right::ReadHandle<Twin>;

    fn filled(keys: &[Key]) -> Self {
        let (mut writer, reader) = left_right::new::<Twin, _>();
        writer.extend(records(keys));
        writer.publish();
        Self {
            reader: reader.factory(),
            _writer: Mutex::new(writer),
        }
    }

    fn handle(&self) -> Self::Handle {
        self.reader.handle()
    }

    #[inline]
    fn read(handle: &Self::Handle, key: &Key) {
        let map = handle.enter().expect("the writer is there");
        black_box(map.0.get(key).map(|record| record.status.generation));
    }
}
