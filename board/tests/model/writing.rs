//! Boards, topics, replies, pages of one version, and forms that are sent twice.

use weald::forest::disk::Moment;
use weald_board::model::{Answers, BoardError, BoardName, Field, MAX_DEPTH, TOPICS, Token};

use super::support::*;

#[test]
fn boards_are_listed_with_the_last_changed_first() {
    weald::block_on(on_both(async |boards| {
        let [tea, milk] = [
            board(&boards, "Tea & more").await,
            board(&boards, "Milk").await,
        ];
        assert_eq!((tea.as_str(), milk.as_str()), ("tea-more", "milk"));
        write(&boards, &tea, None, "hello").await;
        let list: Vec<_> = boards
            .list()
            .into_iter()
            .map(|it| (it.title, it.topics, it.messages))
            .collect();
        assert_eq!(
            list,
            [("Tea & more".to_owned(), 1, 1), ("Milk".to_owned(), 0, 0)]
        );
        let again = boards.create("Milk", "", None).await;
        assert!(matches!(again, Err(BoardError::BoardTaken(name)) if name == "milk"));
        let Err(BoardError::Invalid(invalid)) = boards.create(" ", "", None).await else {
            panic!("a board needs a title");
        };
        assert!(invalid.of(Field::Title).is_some());
    }));
}

#[test]
fn a_title_in_any_script_makes_a_board() {
    weald::block_on(on_both(async |boards| {
        assert_eq!(board(&boards, "Über uns").await.as_str(), "uber-uns");
        let title = "日本語のお茶";
        let new: BoardName = "new".parse().unwrap();
        let token = Token::new(&new, &ada(), "1");
        let tea = boards.create(title, "", Some(token)).await.unwrap();
        assert_eq!(tea.as_str().len(), 10);
        // Sent again, it is the same board; and without a token, another one.
        assert_eq!(
            boards.create(title, "", Some(token)).await.ok(),
            Some(tea.clone())
        );
        assert_ne!(board(&boards, title).await, tea);
        write(&boards, &tea, None, "hello").await;
        assert_eq!(boards.board(&tea).unwrap().title(), title);
        assert_eq!(boards.list().len(), 3);
    }));
}

#[test]
fn an_answer_moves_its_topic_to_the_top() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let first = write(&boards, &tea, None, "first").await;
        let second = write(&boards, &tea, None, "second").await;
        let answer = write(&boards, &tea, Some(first), "answer").await;
        let below = write(&boards, &tea, Some(answer), "below").await;
        let board = boards.board(&tea).unwrap();
        let (topics, pages) = board.topics(1).unwrap();
        let order: Vec<_> = topics
            .iter()
            .map(|it| (it.message.id, it.answers))
            .collect();
        assert_eq!(
            order,
            [(first, Answers::Exactly(2)), (second, Answers::Exactly(0))]
        );
        assert!(topics[0].message.active > Some(topics[0].message.time));
        assert_eq!((pages.number, pages.count), (1, 1));

        let thread = board.thread(first, 1).unwrap();
        let shown: Vec<_> = thread
            .answers
            .iter()
            .map(|it| (it.message.id, it.level, it.unshown))
            .collect();
        assert_eq!(shown, [(answer, 1, 0), (below, 2, 0)]);
        assert!(thread.topic.is_none());
        let thread = board.thread(below, 1).unwrap();
        assert_eq!(thread.topic.map(|it| it.id), Some(first));
        assert_eq!(thread.head.parent, Some(answer));
        let latest: Vec<_> = board.latest(2).into_iter().map(|it| it.id).collect();
        assert_eq!(latest, [below, answer]);
    }));
}

#[test]
fn pages_of_one_version_do_not_shift() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        for number in 0..TOPICS + 3 {
            write(&boards, &tea, None, &format!("topic {number}")).await;
        }
        let then = boards.board(&tea).unwrap().version();
        let titles = |page: usize| {
            let boards = boards.clone();
            let tea = tea.clone();
            async move {
                let board = boards.board_at(&tea, Moment::Version(then)).await.unwrap();
                let topics = board.topics(page).unwrap().0;
                let titles = topics
                    .iter()
                    .map(|it| it.message.post().unwrap().title().to_owned());
                titles.collect::<Vec<_>>()
            }
        };
        let second = titles(2).await;
        assert_eq!(second, ["topic 2", "topic 1", "topic 0"]);
        write(&boards, &tea, None, "one more").await;
        assert_eq!(titles(2).await, second);
        assert_eq!(boards.board(&tea).unwrap().topics(2).unwrap().0.len(), 4);
        assert!(matches!(
            boards.board(&tea).unwrap().topics(3),
            Err(BoardError::NoPage(_))
        ));
    }));
}

#[test]
fn a_form_that_is_sent_twice_makes_one_message() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let topic = write(&boards, &tea, None, "topic").await;
        for parent in [None, Some(topic)] {
            let token = Some(Token::new(&tea, &ada(), &format!("form {parent:?}")));
            let mut form = new(parent, "hello");
            form.token = token;
            let [first, second] = [form.clone(), form.clone()].map(|form| boards.write(&tea, form));
            let (first, second) = (first.await.unwrap(), second.await.unwrap());
            assert_eq!((second.id, second.version), (first.id, first.version));
            assert_eq!((first.is_repetition, second.is_repetition), (false, true));
            let mut other = new(parent, "something else");
            other.token = token;
            assert!(matches!(
                boards.write(&tea, other).await,
                Err(BoardError::TokenUsed)
            ));
        }
        let mut elsewhere = new(Some(topic), "again");
        elsewhere.token = Some(Token::new(&tea, &ada(), "an answer"));
        let first = boards.write(&tea, elsewhere.clone()).await.unwrap();
        elsewhere.parent = Some(first.id);
        let refused = boards.write(&tea, elsewhere).await;
        assert!(matches!(refused, Err(BoardError::TokenUsed)), "{refused:?}");
        assert_eq!(boards.board(&tea).unwrap().info().messages, 4);

        let token = Token::new(&tea, &ada(), "a board");
        let [one, other] = [Some(token); 2].map(|token| boards.create("Milk", "", token));
        assert_eq!(one.await.unwrap(), other.await.unwrap());
    }));
}

#[test]
fn what_is_not_there_cannot_be_answered() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let root = weald::forest::NodeId::new(1).unwrap();
        for id in [root, weald::forest::NodeId::new(77).unwrap()] {
            let refused = boards.write(&tea, new(Some(id), "hello")).await;
            assert!(
                matches!(refused, Err(BoardError::NoMessage(_))),
                "{refused:?}"
            );
        }
        let nowhere = "milk".parse().unwrap();
        assert!(matches!(
            boards.write(&nowhere, new(None, "hello")).await,
            Err(BoardError::NoBoard(_))
        ));
        let topic = write(&boards, &tea, None, "topic").await;
        boards.delete(target(&tea, topic, ada())).await.unwrap();
        assert!(matches!(
            boards.write(&tea, new(Some(topic), "hello")).await,
            Err(BoardError::Gone)
        ));
    }));
}

#[test]
fn a_thread_has_a_greatest_depth_and_a_page_a_greatest_length() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let topic = write(&boards, &tea, None, "topic").await;
        let mut last = topic;
        for number in 0..MAX_DEPTH + 3 {
            last = write(&boards, &tea, Some(last), &format!("{number}")).await;
        }
        let board = boards.board(&tea).unwrap();
        let (mut depth, mut above) = (0, Some(last));
        while let Some(id) = above {
            above = board.message(id).unwrap().parent;
            depth += 1;
        }
        assert_eq!(depth, MAX_DEPTH + 1);
        for number in 0..40 {
            write(&boards, &tea, Some(topic), &format!("wide {number}")).await;
        }
        let board = boards.board(&tea).unwrap();
        let thread = board.thread(topic, 1).unwrap();
        assert_eq!(thread.pages.count, 4);
        assert_eq!(
            thread.answers.len(),
            12 + 3,
            "four levels of the first answer"
        );
        assert_eq!(thread.answers.iter().map(|it| it.level).max(), Some(4));
        assert_eq!(thread.answers[3].unshown, 1);
    }));
}
