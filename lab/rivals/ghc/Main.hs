-- | The rival GHC: processes are threads of @forkIO@; a mailbox is an @MVar@ where one message at a
-- time is enough, and a queue elsewhere (see "Queue").
--
-- Invariants: the number of capabilities is the number of workers; metrics go to stdout with exit
-- code 0, an error is one sentence on stderr with exit code 1, or 2 for bad usage.
module Main (main) where

import Control.Concurrent (setNumCapabilities)
import Control.Monad (when)
import Data.List (sort)
import Data.Version (showVersion)
import System.Environment (getArgs)
import System.Info (fullCompilerVersion)
import Text.Read (readMaybe)

import Channel (Kind (..), channel, select)
import HotTree (Writer (..), hotTree)
import Lock (condvar, lock)
import Mailbox (mailbox)
import Measure (badUsage)
import Ring (ring)
import Shape (Shape, shapeOf)
import Spawn (spawn)
import Traffic (fanIn, manyToMany, pingPong)
import Trees (Mode (..), appendMany, snapshot, treeRead, treeWrite)

-- | The @key=value@ arguments.
type Keys = [(String, String)]

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [] -> badUsage "No workload is given: call it as WORKLOAD key=value ..., or with --version."
    "--version" : _ -> putStrLn ("GHC " ++ showVersion fullCompilerVersion)
    workload : pairs -> do
      keys <- mapM pair pairs
      when (repeats (sort (map fst keys))) (badUsage "A key is given twice: give each once.")
      run <- start workload keys
      workers <- number keys "workers"
      setNumCapabilities workers
      run

repeats :: [String] -> Bool
repeats names = or (zipWith (==) names (drop 1 names))

pair :: String -> IO (String, String)
pair text = case break (== '=') text of
  (key, '=' : given) -> pure (key, given)
  _ -> badUsage ("The argument `" ++ text ++ "` is not of the form key=value.")

-- | Reads the keys of the workload; the result runs it.
start :: String -> Keys -> IO (IO ())
start workload keys = case workload of
  "spawn" -> only ["n"] >> (spawn <$> get "n")
  "ring" -> only ["n", "m", "tokens"] >> readRing
  "mailbox" -> only ["k", "bytes", "payload"] >> (mailbox <$> get "k" <*> get "bytes" <*> payload)
  "many-to-many" -> only ["processes", "messages"] >>
    (manyToMany <$> get "processes" <*> get "messages")
  "fan-in" -> only ["senders", "messages"] >> (fanIn <$> get "senders" <*> get "messages")
  "ping-pong" -> only ["rounds"] >> (pingPong <$> get "rounds")
  "channel" -> only ["senders", "messages", "kind", "capacity"] >>
    (channel <$> get "senders" <*> get "messages" <*> kind)
  "select" -> only ["branches", "messages", "kind", "capacity"] >>
    (select <$> get "branches" <*> get "messages" <*> kind)
  "lock" -> only ["units", "rounds", "inside"] >> (lock <$> get "units" <*> get "rounds" <*> yields)
  "condvar" -> only ["rounds"] >> (condvar <$> get "rounds")
  "tree-read" -> only ["nodes", "tasks"] >> (treeRead <$> shape <*> get "tasks" <*> get "workers")
  "tree-write" -> only ["nodes", "trees", "mode"] >>
    (treeWrite <$> shape <*> get "trees" <*> mode <*> get "workers")
  "hot-tree" -> only ["nodes", "writers", "commits", "kind", "retention"] >>
    (hotTree <$> shape <*> get "writers" <*> get "commits" <*> writer <*> versions)
  "append" -> only ["children", "commits"] >> (appendMany <$> get "children" <*> get "commits")
  "snapshot" -> only ["nodes", "reads", "what"] >>
    (snapshot <$> shape <*> get "reads" <*> get "workers" <* word keys "what" ["borrowed", "owned"])
  _ -> badUsage ("The workload `" ++ workload ++ "` is unknown: see the README.")
  where
    get = number keys
    payload = (== "fresh") <$> word keys "payload" ["shared", "fresh"]
    yields = (== "yield") <$> word keys "inside" ["nothing", "yield"]
    kind = do
      name <- word keys "kind" ["bounded", "unbounded", "rendezvous"]
      case name of
        "bounded" -> Bounded <$> get "capacity"
        "unbounded" -> pure Unbounded
        _ -> badUsage "GHC brings no channel without room: give another kind."
    shape = maybe unknownShape pure . shapeOf =<< get "nodes"
    mode = do
      name <- word keys "mode" ["bulk", "edit", "versions", "commits"]
      pure (case name of "bulk" -> Bulk; "edit" -> Edit; _ -> Commits)
    versions = do
      name <- word keys "retention" ["kept", "none"]
      pure (if name == "kept" then 1000 else 0)
    writer = do
      name <- word keys "kind" ["threads", "processes"]
      pure (if name == "threads" then Bound else Unbound)
    readRing = do
      (n, m, tokens) <- (,,) <$> get "n" <*> get "m" <*> get "tokens"
      when (tokens > n) (badUsage "There are more tokens than processes: give tokens <= n.")
      pure (ring n m tokens)
    only known = case filter (`notElem` ("workers" : known)) (map fst keys) of
      [] -> pure ()
      key : _ ->
        badUsage ("The key `" ++ key ++ "` does not belong to this workload: leave it out.")

unknownShape :: IO Shape
unknownShape = badUsage "The key `nodes` takes 156, 10005 or 810156."

value :: Keys -> String -> IO String
value keys key = maybe missing pure (lookup key keys)
  where
    missing = badUsage ("The key `" ++ key ++ "` is missing: give it as " ++ key ++ "=VALUE.")

number :: Keys -> String -> IO Int
number keys key = do
  text <- value keys key
  case readMaybe text of
    Just n | n >= 1 -> pure n
    _ -> badUsage ("The key `" ++ key ++ "` takes a whole number of at least 1.")

word :: Keys -> String -> [String] -> IO String
word keys key allowed = do
  text <- value keys key
  if text `elem` allowed
    then pure text
    else badUsage ("The key `" ++ key ++ "` takes one of: " ++ unwords allowed ++ ".")
