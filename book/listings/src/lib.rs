//! The listings of the book, as documentation tests: each compiles alone and runs, with the names of `weald`.
//!
//! A chapter is listed here by its file; `every_chapter_is_tested` finds one that is not.

macro_rules! chapters {
    ($($name:ident $file:literal)*) => { $(
        #[doc = include_str!(concat!("../../src/", $file))]
        #[cfg(doctest)]
        pub mod $name {}
    )*
        #[cfg(test)]
        const CHAPTERS: &[&str] = &[$($file),*];
    };
}

chapters! {
    introduction "introduction.md"
    ten_minutes "ten-minutes.md"
    which_tool "which-tool.md"
    blocking "blocking.md"
    web_service "web-service.md"
    chat_server "chat-server.md"
    crawler "crawler.md"
    threads_and_forks "threads-and-forks.md"
    failures "failures.md"
    forest "forest.md"
    board "board.md"
    inside "inside.md"
    seeds "seeds.md"
    from_tokio "from-tokio.md"
    from_erlang "from-erlang.md"
    from_go "from-go.md"
    from_rayon "from-rayon.md"
    from_c "from-c.md"
    how_it_works "how-it-works.md"
    figures "figures.md"
}

#[cfg(test)]
mod tests {
    use super::CHAPTERS;

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    fn every_chapter_is_tested_and_in_the_summary() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../src");
        let summary = std::fs::read_to_string(format!("{folder}/SUMMARY.md")).unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name == "SUMMARY.md" {
                continue;
            }
            assert!(CHAPTERS.contains(&name.as_str()), "{name} is not tested");
            assert!(
                summary.contains(&format!("({name})")),
                "{name} is not in the summary"
            );
        }
    }

    /// Where mdBook finds no file, the page has none, and it goes on.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    fn every_included_file_exists() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../src");
        let mut count = 0;
        for chapter in CHAPTERS {
            let text = std::fs::read_to_string(format!("{folder}/{chapter}")).unwrap();
            for part in text.split("{{#include ").skip(1) {
                let (file, _) = part.split_once("}}").unwrap();
                let file = format!("{folder}/{file}");
                assert!(std::fs::metadata(&file).is_ok(), "{chapter}: no {file}");
                count += 1;
            }
        }
        assert!(count > 2);
    }
}
