//! The links, anchors and commands in a page: as much of Markdown as our own pages use.

/// A line of a page, and whether it stands in a code block.
struct Line<'a> {
    number: usize,
    text: &'a str,
    code: bool,
}

fn lines(page: &str) -> impl Iterator<Item = Line<'_>> {
    let mut code = false;
    page.lines().enumerate().filter_map(move |(index, text)| {
        if text.trim_start().starts_with("```") {
            code = !code;
            return None;
        }
        Some(Line {
            number: index + 1,
            text,
            code,
        })
    })
}

/// The target of each link and picture, with its line.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for line in lines(page).filter(|line| !line.code) {
        let text = without_code_spans(line.text);
        let inline = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        let reference = text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .map(|(_, target)| target);
        for target in inline.chain(reference) {
            // A title may follow the target.
            if let Some(target) = target.split_whitespace().next() {
                links.push((line.number, target.trim_matches(['<', '>']).to_owned()));
            }
        }
    }
    links
}

/// The anchors of a page's headings, as a forge makes them.
pub fn anchors(page: &str) -> Vec<String> {
    let headings = lines(page).filter(|line| !line.code && line.text.starts_with('#'));
    headings
        .map(|line| anchor(line.text.trim_start_matches('#')))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| {
        if c == ' ' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

/// The `cargo` commands of a page, with their lines: from code blocks, joined over `\`, and from code spans.
pub fn commands(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut continued: Option<(usize, String)> = None;
    for line in lines(page) {
        if !line.code {
            let spans = line.text.split('`').skip(1).step_by(2);
            found.extend(spans.map(|span| (line.number, span.to_owned())));
            continue;
        }
        let (number, mut text) = continued.take().unwrap_or((line.number, String::new()));
        match line.text.strip_suffix('\\') {
            Some(start) => {
                text.push_str(start);
                continued = Some((number, text));
            }
            None => {
                text.push_str(line.text);
                found.push((number, text));
            }
        }
    }
    let commands = found
        .into_iter()
        .filter_map(|(line, text)| Some((line, cargo_part(&text)?)));
    commands.collect()
}

/// The `cargo ...` in a command line, without a prompt, variables set before it, or what follows it.
fn cargo_part(line: &str) -> Option<String> {
    let mut words = line
        .trim_start()
        .trim_start_matches("$ ")
        .split_whitespace()
        .peekable();
    while words.next_if(|word| is_assignment(word)).is_some() {}
    if words.next() != Some("cargo") {
        return None;
    }
    let ends = |word: &&str| {
        ["|", "||", "&&", "&", ";", "#", ">"]
            .iter()
            .any(|end| word == end)
    };
    let rest: Vec<&str> = words.take_while(|word| !ends(word)).collect();
    Some(rest.join(" "))
}

fn is_assignment(word: &str) -> bool {
    let named =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    word.split_once('=').is_some_and(|(name, _)| named(name))
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_of_code_are_found() {
        let page = "# A\n[one](docs/a.md) and ![two](b.png \"title\")\n```\n[no](x)\n```\n`[no](y)`\n[ref]: c.md\n";
        let targets: Vec<(usize, String)> = links(page);
        assert_eq!(
            targets,
            [
                (2, "docs/a.md".into()),
                (2, "b.png".into()),
                (7, "c.md".into())
            ]
        );
    }

    #[test]
    fn anchors_are_those_of_a_forge() {
        assert_eq!(
            anchors("## Pure cores, thin shells\ntext\n```\n# no\n```\n"),
            ["pure-cores-thin-shells"]
        );
    }

    #[test]
    fn commands_are_found_in_blocks_and_spans() {
        let page = "Run `cargo xtask test`.\n```sh\n$ UO_SEEDS=5 cargo test -p uo-server \\\n    --test simulated # why\n\
                    ls\ncargo run | cat\n```\n";
        let found = commands(page);
        let expected = [
            (1, "xtask test".into()),
            (3, "test -p uo-server --test simulated".into()),
            (6, "run".into()),
        ];
        assert_eq!(found, expected);
    }
}
