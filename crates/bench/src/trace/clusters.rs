//! Twitter's 54 cache clusters, as published: one row each (`data/SOURCES.md` says where from).

use super::Op;

const TABLE: &str = include_str!("../../data/twitter_clusters_2020mar.csv");

/// One cluster's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// 1 to 54.
    pub number: u32,
    /// Misses of the production cache as a share of gets; none for a cluster without gets.
    pub miss_ratio: Option<f64>,
    /// Mean length of a key in bytes.
    pub key_bytes: f64,
    /// Mean length of a value in bytes.
    pub value_bytes: f64,
    /// Requests a second.
    pub rate: f64,
    /// Requests of a key in the mean.
    pub mean_frequency: f64,
    /// Keys that are asked for only once, as a share of keys.
    pub one_hit_wonders: f64,
    /// Expiry in seconds with its share; shares add up to 1.
    pub ttls: Vec<(u32, f64)>,
    /// Working set in bytes when nothing expired; 0 where the table has none.
    pub working_set_without_ttl: f64,
    /// Working set in bytes; 0 where the table has none.
    pub working_set: f64,
    /// Operations with their shares, which add up to 1.
    pub operations: Vec<(Op, f64)>,
    /// Zipf's exponent of the keys' popularity.
    pub zipf_alpha: f64,
}

impl Cluster {
    /// Requests a key. The table rounds to a tenth; where that is less than one-hit wonders and two requests
    /// for every other key allow, it is that.
    pub fn frequency(&self) -> f64 {
        self.mean_frequency.max(2.0 - self.one_hit_wonders)
    }
}

/// The clusters that have figures; cluster 5 has none.
pub fn all() -> Vec<Cluster> {
    TABLE.lines().skip(1).filter_map(parse).collect()
}

/// A cluster by its number.
///
/// # Errors
/// There is none, or it has no figures.
pub fn find(number: u32) -> Result<Cluster, String> {
    match all().into_iter().find(|cluster| cluster.number == number) {
        Some(cluster) => Ok(cluster),
        None if number == 5 => Err("the published table has no figures for cluster 5".to_string()),
        None => Err(format!("there is no cluster {number}; they are 1 to 54")),
    }
}

fn parse(line: &str) -> Option<Cluster> {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |at: usize| cells.get(at)?.parse::<f64>().ok();
    let ttls = weighted(cells.get(9)?, seconds)?;
    let operations = weighted(cells.get(12)?, Op::parse)?;
    Some(Cluster {
        number: cells.first()?.strip_prefix("cluster")?.parse().ok()?,
        miss_ratio: number(1),
        key_bytes: number(3)?,
        value_bytes: number(4)?,
        rate: number(5)? * 1000.0,
        mean_frequency: number(6)?,
        one_hit_wonders: number(7)? / 100.0,
        ttls,
        working_set_without_ttl: number(10).unwrap_or(0.0) * 1e6,
        working_set: number(11).unwrap_or(0.0) * 1e6,
        operations,
        zipf_alpha: number(13).unwrap_or(0.0),
    })
}

/// `name:share name:share`, shares made to add up to 1; the table leaves out rare ones.
fn weighted<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<(T, f64)>> {
    let mut pairs = Vec::new();
    for pair in text.split_whitespace() {
        let (name, share) = pair.split_once(':')?;
        pairs.push((parse(name)?, share.parse::<f64>().ok()?));
    }
    let sum: f64 = pairs.iter().map(|pair| pair.1).sum();
    pairs.iter_mut().for_each(|pair| pair.1 /= sum);
    (sum > 0.0).then_some(pairs)
}

/// `300s`, `1.8h`, `4d`.
fn seconds(text: &str) -> Option<u32> {
    let unit = text.char_indices().next_back()?;
    let factor = match unit.1 {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        _ => return None,
    };
    Some((text[..unit.0].parse::<f64>().ok()? * factor).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_but_the_empty_one_is_read() {
        let all = all();
        assert_eq!(all.len(), 53);
        assert!(find(5).is_err() && find(55).is_err());
        let mixes = all.iter().map(|cluster| cluster.operations.iter().map(|op| op.1).sum::<f64>());
        assert!(mixes.into_iter().all(|sum| (sum - 1.0).abs() < 1e-9));
        assert!(all.iter().all(|c| c.value_bytes > 0.0 && c.rate > 0.0 && c.mean_frequency >= 1.0));
    }

    #[test]
    fn row_twelve_is_what_is_printed() {
        let row = find(12).expect("it is there");
        assert_eq!((row.key_bytes, row.value_bytes, row.rate), (44.0, 1030.0, 4360.0));
        assert_eq!((row.mean_frequency, row.zipf_alpha, row.working_set), (1.3, 0.3048, 986e6));
        assert_eq!(row.ttls, [(300, 0.98), (299, 0.02)]);
        assert_eq!(row.operations, [(Op::Set, 0.8), (Op::Get, 0.2)]);
        assert!((row.one_hit_wonders - 0.8143).abs() < 1e-9);
    }
}
