//! A counter in a document of MongoDB, or of a server that speaks its protocol.

use super::session::Session;
use crate::counter::store::{Error, Failure, Options, Sql, Store, Worker};
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, ReturnDocument};
use mongodb::{Client, Collection};

/// A server.
pub struct MongoDb {
    address: String,
    options: Options,
}

impl MongoDb {
    /// At an address that begins with `mongodb://`.
    pub fn new(address: &str, options: Options) -> Result<Self, Error> {
        let address = if address.contains("://") { address.into() } else { format!("mongodb://{address}/") };
        Ok(Self { address, options })
    }

    fn collection(&self) -> Result<(Session, Client, Collection<Document>), Error> {
        let session = Session::new(self.options.timeout)?;
        let mut parsed = session.wait(async { ClientOptions::parse(&self.address).await }, error)?;
        parsed.app_name.get_or_insert_with(|| "larder-bench".into());
        parsed.max_pool_size = Some(1);
        // An increment that is sent again behind our back would happen twice.
        parsed.retry_writes = Some(false);
        parsed.server_selection_timeout.get_or_insert(self.options.timeout.mul_f64(0.9));
        parsed.connect_timeout.get_or_insert(self.options.timeout);
        let client = session.wait(async { Client::with_options(parsed) }, error)?;
        let collection = client.database("larder_bench").collection("cache");
        Ok((session, client, collection))
    }

    fn filter(&self) -> Document {
        match self.options.sql {
            Sql::Idiomatic => doc! { "_id": "counter" },
            Sql::AsSeed => doc! {},
        }
    }
}

impl Store for MongoDb {
    fn version(&self) -> Result<String, Error> {
        let (session, client, _) = self.collection()?;
        let admin = client.database("admin");
        let command = async { admin.run_command(doc! { "buildInfo": 1 }).await };
        let info = session.wait(command, error)?;
        Ok(info.get_str("version").unwrap_or("unknown").into())
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        let (session, _, collection) = self.collection()?;
        session.wait(async { collection.delete_many(doc! {}).await }, error).map(drop)
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let (session, _, collection) = self.collection()?;
        Ok(Box::new(Incrementing { session, collection, filter: self.filter() }))
    }

    fn read(&self) -> Result<u64, Error> {
        let (session, _, collection) = self.collection()?;
        match session.wait(async { collection.find_one(self.filter()).await }, error)? {
            None => Ok(0),
            Some(document) => value(&document).map_err(Error),
        }
    }
}

struct Incrementing {
    session: Session,
    collection: Collection<Document>,
    filter: Document,
}

impl Worker for Incrementing {
    fn increment(&mut self) -> Result<u64, Failure> {
        let Self { session, collection, filter } = self;
        let found = async {
            let update = doc! { "$inc": { "counter": 1 } };
            let action = collection.find_one_and_update(filter.clone(), update).upsert(true);
            action.return_document(ReturnDocument::After).await
        };
        let document = session.increment(found, failure)?;
        let document = document.ok_or_else(|| Failure::Lost("the answer holds no document".into()))?;
        value(&document).map_err(Failure::Lost)
    }
}

fn value(document: &Document) -> Result<u64, String> {
    let value = match document.get("counter") {
        Some(Bson::Int32(value)) => u64::try_from(*value).ok(),
        Some(Bson::Int64(value)) => u64::try_from(*value).ok(),
        // Servers may count in doubles; whole ones below 2^53 are exact.
        Some(Bson::Double(value)) if *value >= 0.0 && value.fract() == 0.0 => Some(*value as u64),
        _ => None,
    };
    value.ok_or_else(|| format!("the counter holds {:?}", document.get("counter")))
}

/// The server's error means that nothing was done, unless it concerns the server itself: then it is unknown.
fn failure(error: mongodb::error::Error) -> Failure {
    let is_refusal = matches!(&*error.kind, ErrorKind::Command(_) | ErrorKind::Write(_))
        && !error.contains_label("RetryableWriteError");
    if is_refusal { Failure::Refused(error.to_string()) } else { Failure::Lost(error.to_string()) }
}

fn error(error: mongodb::error::Error) -> Error {
    Error(error.kind.to_string())
}
