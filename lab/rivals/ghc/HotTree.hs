-- | @hot-tree@: many threads commit to one tree.
--
-- Invariants: each writer counts and times in memory of its own; its edits follow from its number
-- alone, so that the tree can be checked afterwards.
module HotTree (Writer (..), hotTree) where

import Control.Concurrent (forkIO, forkOS)
import Control.Exception (evaluate)
import Control.Monad (replicateM, when)
import Data.Array (Array, listArray)
import Data.Array.Base (unsafeAt, unsafeWrite)
import Data.Array.IO (IOUArray, getElems, newArray)
import qualified Data.ByteString.Char8 as C
import Data.List (sort)
import qualified Data.IntSet as IntSet
import Data.Word (Word64)

import Measure
import Published
import Shape
import Team (togetherBy)
import Tree

-- | The kind of a writer: an OS thread of its own, or a thread of the runtime.
data Writer = Bound | Unbound

-- | What a writer records: versions made, including vain ones, and nanoseconds for each commit.
data Record = Record !Counter !(IOUArray Int Double)

hotTree :: Shape -> Int -> Int -> Writer -> Int -> IO ()
hotTree shape writers commits writer versions = do
  tree <- publish (build shape 0)
  kept <- newKept versions
  let each = (commits + writers - 1) `div` writers
      known = paths shape
  _ <- evaluate (pathAt known 0)
  records <- replicateM writers (Record <$> newCounter <*> newArray (0, each - 1) 0)
  elapsed <- togetherBy (fork writer)
    [ commitMany (tree, kept) known (sizeOf shape) (number, each) record
    | (number, record) <- zip [1 ..] records
    ]
  check shape writers each =<< newest tree
  made <- sum <$> sequence [counted versions | Record versions _ <- records]
  latencies <- sort . concat <$> sequence [getElems latencies | Record _ latencies <- records]
  let commits' = writers * each
  printMetrics
    [ ("commits_per_s", fromIntegral commits' / (elapsed / 1e9))
    , ("p99_us", latencies !! ((commits' - 1) * 99 `div` 100) / 1e3)
    , ("retries_per_commit", fromIntegral (made - commits') / fromIntegral commits')
    ]
  where
    fork Bound = forkOS
    fork Unbound = forkIO

commitMany :: (Published, Kept) -> Paths -> Int -> (Int, Int) -> Record -> IO ()
commitMany (tree, kept) known nodes (number, each) (Record versions latencies) = go 0 (fromIntegral number)
  where
    go :: Int -> Word64 -> IO ()
    go done _ | done == each = pure ()
    go done random = do
      clock <- now
      let (random', edit) = choose nodes done random
      keep kept =<< case edit of
        Append at -> commitAs (append (pathAt known at) (leaf done))
        Put at which -> commitAs (put (pathAt known at) (unsafeAt names which) (fromIntegral done))
      ended <- now
      unsafeWrite latencies done (ended - clock)
      go (done + 1) random'
    commitAs = commitCounting (add versions 1) tree

-- | An edit of the node with a number: a new node below it, or one of the attributes.
data Edit = Append !Int | Put !Int !Int

-- | The edit of a writer in a step, and its generator after that.
choose :: Int -> Int -> Word64 -> (Word64, Edit)
choose nodes done random
  | even done = (random', Append at)
  | otherwise = let (after, which) = nextTarget 8 random' in (after, Put at which)
  where
    (random', at) = nextTarget nodes random
{-# INLINE choose #-}

-- | Fails unless the tree holds what all writers appended and put.
check :: Shape -> Int -> Int -> Node -> IO ()
check shape writers each root =
  when ((nodeCount root, attributeCount root) /= (nodes, nodes + IntSet.size known)) $
    failWith "The tree does not hold what the writers committed."
  where
    nodes = sizeOf shape + writers * ((each + 1) `div` 2)
    known = IntSet.fromList
      [at * 8 + which | writer <- [1 .. writers], Put at which <- edits 0 (fromIntegral writer)]
    edits done random
      | done == each = []
      | otherwise =
          let (random', edit) = choose (sizeOf shape) done random
           in edit : edits (done + 1) random'

-- | The attributes; a commit puts one of them.
names :: Array Int Name
names = listArray (0, 7) (map C.singleton ['a' .. 'h'])
