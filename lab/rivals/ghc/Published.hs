-- | Where versions are published: a root in a @TVar@, and a map of names in another one.
module Published
  ( Kept, keep, newKept
  , Published, commit, commitCounting, newest, publish
  , Names, find, newNames, register
  ) where

import Control.Concurrent.STM
import Data.Array.IO (IOArray, newArray)
import Data.Array.Base (unsafeWrite)
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.Map.Strict (Map)
import qualified Data.Map.Strict as Map
import GHC.Conc (unsafeIOToSTM)

import Tree

-- | A tree that is published version by version.
newtype Published = Published (TVar Node)

publish :: Node -> IO Published
publish root = Published <$> (newTVarIO $! root)

newest :: Published -> IO Node
newest (Published root) = readTVarIO root
{-# INLINE newest #-}

-- | Derives a version from the newest one; the transaction starts again if another came first.
commit :: Published -> (Node -> Node) -> IO Node
commit = commitCounting (pure ())
{-# INLINE commit #-}

-- | The same; the action runs each time that a version is derived, including vain ones.
commitCounting :: IO () -> Published -> (Node -> Node) -> IO Node
commitCounting making (Published root) change = atomically $ do
  unsafeIOToSTM making
  before <- readTVar root
  let next = change before
  writeTVar root $! next
  pure next
{-# INLINE commitCounting #-}

-- | The newest versions of a tree, so that they can be read again: a ring of slots.
data Kept = Kept !Int !(IORef Int) !(IOArray Int (Maybe Node))

newKept :: Int -> IO Kept
newKept versions = Kept versions <$> newIORef 0 <*> newArray (0, max 0 (versions - 1)) Nothing

-- | Keeps a version in place of the oldest one; or not at all, if none are kept.
keep :: Kept -> Node -> IO ()
keep (Kept 0 _ _) _ = pure ()
keep (Kept versions published slots) version = do
  number <- atomicModifyIORef' published (\count -> (count + 1, count))
  unsafeWrite slots (number `mod` versions) (Just version)

-- | Trees by their names.
newtype Names = Names (TVar (Map Name Published))

newNames :: IO Names
newNames = Names <$> newTVarIO Map.empty

register :: Names -> Name -> Published -> IO ()
register (Names names) name tree = atomically (modifyTVar' names (Map.insert name tree))

find :: Names -> Name -> IO (Maybe Published)
find (Names names) name = Map.lookup name <$> readTVarIO names
