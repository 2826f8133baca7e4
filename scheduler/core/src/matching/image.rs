//! ImageLocality score: nodes that already hold large parts of a pod's images are preferred, less so when few
//! nodes hold them, so that pods do not all chase one node (section 8).

use super::MAX_NODE_SCORE;

const MIB: i64 = 1024 * 1024;
/// Less than this in total is not worth a preference.
const LEAST: i64 = 23 * MIB;
/// More than this per container does not count.
const MOST_PER_CONTAINER: i64 = 1000 * MIB;

/// Name under which a node lists an image: `:latest` is added to a name without a tag. A `:` before the last
/// `/` belongs to the port of a registry.
pub fn normalized_image_name(name: &str) -> String {
    if name.rfind(':') <= name.rfind('/') { format!("{name}:latest") } else { name.to_owned() }
}

/// ImageLocality score 0..100.
///
/// `images` are the images of a pod's containers and init containers as written, `node_images` the names on
/// the node with sizes in bytes, `nodes_having` tells how many nodes list a (normalised) name, `total_nodes`
/// counts all nodes. Each present image adds `size * (nodes having it / all nodes)`, truncated.
pub fn image_locality(
    images: &[String],
    node_images: &[(String, i64)],
    nodes_having: impl Fn(&str) -> i64,
    total_nodes: i64,
) -> i64 {
    if total_nodes <= 0 || images.is_empty() {
        return 0;
    }
    let mut sum: i64 = 0;
    for image in images {
        let name = normalized_image_name(image);
        if let Some((_, size)) = node_images.iter().find(|(present, _)| *present == name) {
            let share = nodes_having(&name) as f64 / total_nodes as f64;
            sum = sum.saturating_add((*size as f64 * share) as i64);
        }
    }
    let most = MOST_PER_CONTAINER * images.len() as i64;
    MAX_NODE_SCORE * (sum.clamp(LEAST, most) - LEAST) / (most - LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(images: &[&str], node: &[(&str, i64)], having: i64, total: i64) -> i64 {
        let images: Vec<String> = images.iter().map(|i| (*i).to_owned()).collect();
        let node: Vec<(String, i64)> = node.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect();
        image_locality(&images, &node, |_| having, total)
    }

    #[test]
    fn names_without_a_tag_get_latest_and_ports_are_no_tags() {
        let cases = [
            ("nginx", "nginx:latest"),
            ("nginx:1.27", "nginx:1.27"),
            ("registry:5000/nginx", "registry:5000/nginx:latest"),
            ("registry:5000/nginx:1", "registry:5000/nginx:1"),
            ("repo/nginx", "repo/nginx:latest"),
            ("nginx@sha256:00", "nginx@sha256:00"),
            ("", ":latest"),
        ];
        for (name, expected) in cases {
            assert_eq!(normalized_image_name(name), expected);
        }
    }

    #[test]
    fn a_missing_image_scores_nothing() {
        assert_eq!(score(&["a"], &[("b:latest", 900 * MIB)], 1, 1), 0);
        assert_eq!(score(&["a"], &[], 0, 1), 0);
        assert_eq!(score(&[], &[("a:latest", 900 * MIB)], 1, 1), 0);
        assert_eq!(score(&["a"], &[("a:latest", 900 * MIB)], 1, 0), 0);
    }

    #[test]
    fn the_score_grows_from_23_mib_to_1000_mib_per_container() {
        let of = |mib: i64| score(&["a"], &[("a:latest", mib * MIB)], 1, 1);
        assert_eq!(of(22), 0);
        assert_eq!(of(23), 0);
        assert_eq!(of(250), 100 * (250 - 23) / (1000 - 23));
        assert_eq!(of(1000), 100);
        assert_eq!(of(5000), 100);
        assert_eq!(score(&["a"], &[("a:latest", i64::MAX)], 1, 1), 100);
    }

    #[test]
    fn images_of_all_containers_add_up_under_a_common_ceiling() {
        let node = [("a:latest", 1000 * MIB), ("b:1", 140 * MIB)];
        assert_eq!(score(&["a", "b:1"], &node, 1, 1), 100 * (1140 - 23) / (2000 - 23));
        assert_eq!(score(&["a", "a"], &node, 1, 1), 100);
    }

    #[test]
    fn rare_images_count_by_the_share_of_nodes_that_have_them() {
        let node = [("a:latest", 250 * MIB)];
        assert_eq!(score(&["a"], &node, 1, 2), 100 * (125 - 23) / (1000 - 23));
        // 250 MiB / 3 is not whole: the fraction of a byte is cut off before the sum.
        let third = (250.0 * MIB as f64 * (1.0 / 3.0)) as i64;
        assert_eq!(score(&["a"], &node, 1, 3), 100 * (third - 23 * MIB) / (977 * MIB));
    }
}
