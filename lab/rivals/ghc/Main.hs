-- | The rival GHC: processes are threads of @forkIO@; a mailbox is an @MVar@ where one message at a
-- time is enough, and a queue elsewhere (see "Queue").
--
-- rival-start (common/src/start.rs) checks the keys and puts them into the environment, and says what the program may
-- ask it.
--
-- Invariants: the number of capabilities is the number of workers; metrics go to stdout with exit
-- code 0, an error is one sentence on stderr with exit code 1, or 2 for bad usage.
module Main (main) where

import Control.Concurrent (setNumCapabilities)
import Control.Monad (when)
import Data.Version (showVersion)
import System.Environment (getArgs, getEnv, lookupEnv)
import System.Info (fullCompilerVersion)

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

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [] -> badUsage "No workload is given: let rival-start call it, or give --version."
    "--version" : _ -> putStrLn ("GHC " ++ showVersion fullCompilerVersion)
    workload : _ -> do
      run <- start workload
      setNumCapabilities =<< get "workers"
      run

-- | Reads the keys of the workload; the result runs it.
start :: String -> IO (IO ())
start workload = case workload of
  "spawn" -> spawn <$> get "n"
  "ring" -> readRing
  "mailbox" -> mailbox <$> get "k" <*> get "bytes" <*> payload
  "many-to-many" -> manyToMany <$> get "processes" <*> get "messages"
  "fan-in" -> fanIn <$> get "senders" <*> get "messages"
  "ping-pong" -> pingPong <$> get "rounds"
  "channel" -> channel <$> get "senders" <*> get "messages" <*> kind
  "select" -> select <$> get "branches" <*> get "messages" <*> kind
  "lock" -> lock <$> get "units" <*> get "rounds" <*> yields
  "condvar" -> condvar <$> get "rounds"
  "tree-read" -> onlyCount >> treeRead <$> shape <*> get "tasks" <*> get "workers"
  "tree-write" -> treeWrite <$> shape <*> get "trees" <*> mode <*> get "workers"
  "hot-tree" -> hotTree <$> shape <*> get "writers" <*> get "commits" <*> writer <*> versions
  "append" -> appendMany <$> get "children" <*> get "commits"
  "snapshot" -> snapshot <$> shape <*> get "reads" <*> get "workers"
  _ -> badUsage ("The workload `" ++ workload ++ "` is unknown: see the README.")
  where
    payload = (== "fresh") <$> word "payload" ["shared", "fresh"]
    yields = (== "yield") <$> word "inside" ["nothing", "yield"]
    kind = word "kind" ["bounded", "unbounded", "rendezvous"] >>= \name -> case name of
      "bounded" -> Bounded <$> get "capacity"
      "unbounded" -> pure Unbounded
      _ -> badUsage "GHC brings no channel without room: give another kind."
    shape = maybe unknownShape pure . shapeOf =<< get "nodes"
    mode = (\name -> case name of "bulk" -> Bulk; "edit" -> Edit; _ -> Commits) <$> word "mode" ["bulk", "edit", "versions", "commits"]
    versions = (\name -> if name == "kept" then 1000 else 0) <$> word "retention" ["kept", "none"]
    writer = (\name -> if name == "threads" then Bound else Unbound) <$> word "kind" ["threads", "processes"]
    onlyCount = lookupEnv "what" >>= \what ->
      when (what == Just "attribute") (badUsage "GHC has no program that reads attributes: leave the key `what` out.")
    readRing = do
      (n, m, tokens) <- (,,) <$> get "n" <*> get "m" <*> get "tokens"
      when (tokens > n) (badUsage "There are more tokens than processes: give tokens <= n.")
      pure (ring n m tokens)

unknownShape :: IO Shape
unknownShape = badUsage "The key `nodes` takes 156, 10005 or 810156."

-- | A number, which the starter has checked.
get :: String -> IO Int
get key = getEnv key >>= \text -> pure $! read text

word :: String -> [String] -> IO String
word key allowed = getEnv key >>= \text ->
  if text `elem` allowed
    then pure text
    else badUsage ("The key `" ++ key ++ "` takes one of: " ++ unwords allowed ++ ".")
