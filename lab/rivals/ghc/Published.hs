-- | Where versions are published: a root in a @TVar@, and a map of names in another one.
module Published
  ( Published, commit, commitCounting, newest, publish
  , Names, find, newNames, register
  ) where

import Control.Concurrent.STM
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

-- | Trees by their names.
newtype Names = Names (TVar (Map Name Published))

newNames :: IO Names
newNames = Names <$> newTVarIO Map.empty

register :: Names -> Name -> Published -> IO ()
register (Names names) name tree = atomically (modifyTVar' names (Map.insert name tree))

find :: Names -> Name -> IO (Maybe Published)
find (Names names) name = Map.lookup name <$> readTVarIO names
